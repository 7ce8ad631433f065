package web

import (
	"context"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

const (
	outcomesAge  = 30 * time.Second // for which counted outcomes are good: counting may take reading a week of records
	keptOutcomes = 200              // jobs of which they are kept
)

// outcomes keeps how the runs of jobs have ended of late.
type outcomes struct {
	mu   sync.Mutex
	kept map[string]keptOutcome
}

// keptOutcome is what was counted of a job, and when.
type keptOutcome struct {
	counted []state.Outcomes
	at      time.Time
}

func newOutcomes() *outcomes { return &outcomes{kept: make(map[string]keptOutcome)} }

func (o *outcomes) get(uid string, now time.Time) ([]state.Outcomes, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k, ok := o.kept[uid]
	age := now.Sub(k.at)
	return k.counted, ok && age >= 0 && age < outcomesAge
}

func (o *outcomes) keep(uid string, k keptOutcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.kept) >= keptOutcomes {
		clear(o.kept) // they are counted again when somebody asks
	}
	o.kept[uid] = k
}

// outcomes is how a job's runs have ended in the last day and the last week.
func (v *visit) outcomes(ctx context.Context, spec *state.Spec) ([]fact, error) {
	uid := spec.Name + " " + spec.UID
	counted, ok := v.pages.outcomes.get(uid, v.now)
	if !ok {
		var err error
		if counted, err = inspect.Outcomes(ctx, v.store, spec.Name, v.now); err != nil {
			return nil, err
		}
		v.pages.outcomes.keep(uid, keptOutcome{counted: counted, at: v.now})
	}
	var facts []fact
	for i := range counted {
		if c := &counted[i]; c.SuccessRate != nil && c.MeanDurationMS != nil {
			facts = append(facts, fact{
				Name: v.lang.say("outcomes.window", v.lang.span(v.now.Sub(c.Since).Round(time.Second))),
				Text: v.lang.say("outcomes.text", percent(*c.SuccessRate), number(c.Succeeded+c.Failed), v.lang.millis(int64(*c.MeanDurationMS))),
			})
		}
	}
	return facts, nil
}
