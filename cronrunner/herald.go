package cronrunner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// Telling. A job's status says what of its incidents is still to be told, so the leader tells that of each status
// that it learns of, and notes it down: what one leader did not get told, the next one does. A leader that dies
// between telling and noting has the same told again, under the same key.

const (
	// maxTelling is how many calls of Notify go on at once; whose receiver does not answer holds up the others no
	// longer than tellLimit.
	maxTelling = 8
	tellLimit  = 15 * time.Second
	// Pauses after a call that failed; they double up to the limit.
	firstTellPause, maxTellPause = time.Second, 5 * time.Minute
	// maxAskedPause is the longest pause that a receiver can ask for.
	maxAskedPause = time.Hour
)

// herald is what a term has to tell. Only the loop touches it.
type herald struct {
	// ctx is the term's, for what is told beside the loop.
	ctx     context.Context //nolint:containedctx // see above
	debts   map[string]*debt
	queue   []string // jobs of which something is to be told now, in order; each is in it once
	telling int
	again   time.Time        // when the first of those is due that are to be tried again; zero if there are none
	noted   map[string]int64 // revision of a job's status when something was last noted down
	warned  time.Time
}

func newHerald(ctx context.Context) *herald {
	return &herald{ctx: ctx, debts: make(map[string]*debt), noted: make(map[string]int64)}
}

// debt is a job of which something is to be told.
type debt struct {
	again time.Time     // it is left alone until then; zero while it is in the queue or being told
	pause time.Duration // the last such pause
	told  string        // the key of what was told, and could not be noted down
}

// owe has told what is to be told of a job, as its status says.
func (t *term) owe(js *jobState) {
	h := t.herald
	if js.job == nil || js.def.Broken != nil || h.debts[js.name] != nil {
		return
	}
	if _, _, owed := t.owed(js); owed {
		h.debts[js.name] = &debt{}
		h.queue = append(h.queue, js.name)
		t.tellNext()
	}
}

// owed is what is to be told next of a job, as its status says. One that was read before something was last noted down
// says nothing: it is read anew.
func (t *term) owed(js *jobState) (in state.Incident, kind state.AlertKind, ok bool) {
	view := &js.def.View
	switch {
	case len(view.Status.Alerting) == 0:
		return state.Incident{}, "", false
	case view.Revision < t.herald.noted[js.name]:
		js.reload = true
		t.enqueue(js)
		return state.Incident{}, "", false
	}
	return view.Status.Owed(js.job.alert)
}

// tellNext begins to tell what waits, as much as may be told at once.
func (t *term) tellNext() {
	h := t.herald
	for h.telling < maxTelling && len(h.queue) > 0 {
		name := h.queue[0]
		h.queue = h.queue[1:]
		js := t.jobs[name]
		if js.job == nil {
			delete(h.debts, name)
			continue
		}
		in, kind, owed := t.owed(js)
		if !owed {
			delete(h.debts, name)
			continue
		}
		told := state.Told{
			Term: t.held, Job: name, UID: js.def.Spec.UID, View: js.def.View, Alert: js.job.alert, Incident: in, Kind: kind,
		}
		j, before := js.job, h.debts[name].told
		h.telling++
		t.s.attempts.work.Go(func() {
			d := t.tellOne(h.ctx, j, told, before)
			t.tell(func(t *term) error { return t.toldOne(name, d) })
		})
	}
}

// delivery is how telling went.
type delivery struct {
	told  string // the key of what was told, if it was
	after time.Duration
	err   error // why it was not told, or not noted down
	view  state.View
}

// tellOne tells one thing, unless that is before, and notes it down.
func (t *term) tellOne(ctx context.Context, j *job, told state.Told, before string) (d delivery) {
	if told.Kind != "" && j.Alert.Notify != nil { // an earlier leader may have had one
		n := noticeOf(j, &told.Incident, told.Kind, t.s.self.ID, orDefault(t.s.cfg.Namespace, state.DefaultNamespace))
		d.told = n.Key
		if n.Key != before {
			res := j.Alert.notify(ctx, n)
			if ctx.Err() != nil && res.err != nil {
				return delivery{err: res.err} // the term is over, and says nothing
			}
			t.s.observer.Observe(Notified{Job: n.Job, Kind: n.Kind, Err: res.err, GivenUp: res.permanent})
			switch {
			case res.permanent:
				t.log.Error("alert given up: it was refused for good", zap.String("job", n.Job), zap.String("kind", string(n.Kind)), zap.Error(res.err))
			case res.err != nil:
				return delivery{err: res.err, after: res.after}
			default:
				t.log.Info("alert told", zap.String("job", n.Job), zap.String("kind", string(n.Kind)), zap.String("run", n.Run))
			}
		}
	}
	d.view, d.err = t.s.store.MarkTold(t.s.attempts.recording, told)
	return d
}

// notify calls Notify with its time limit.
func (a *Alert) notify(ctx context.Context, n Notice) result {
	ctx, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	return <-callUser(func() error { return a.Notify(ctx, n) })
}

// toldOne takes how telling one thing of a job went.
func (t *term) toldOne(name string, d delivery) error {
	h, js := t.herald, t.jobs[name]
	h.telling--
	defer t.tellNext()
	if d.view.Revision > js.def.View.Revision {
		js.def.View = d.view
	}
	switch {
	case errors.Is(d.err, state.ErrNotLeading):
		return d.err
	case errors.Is(d.err, state.ErrStatusReplaced):
		delete(h.debts, name)
		js.reload = true
		t.enqueue(js)
	case d.err == nil:
		delete(h.debts, name)
		h.noted[name] = d.view.Revision
		t.owe(js) // the next thing
	default:
		owed := h.debts[name]
		owed.told = d.told
		owed.pause = min(max(2*owed.pause, firstTellPause), maxTellPause)
		pause := owed.pause/2 + rand.N(owed.pause/2)
		if d.after > 0 {
			pause = min(d.after, maxAskedPause)
		}
		owed.again = time.Now().Add(pause)
		if h.again.IsZero() || owed.again.Before(h.again) {
			h.again = owed.again
		}
		if time.Since(h.warned) >= time.Second { // a receiver that is down is one of every job
			h.warned = time.Now()
			t.log.Warn("alert not told, trying again", zap.String("job", name), zap.Duration("in", pause), zap.Error(d.err))
		}
	}
	return nil
}

// tellAgain queues what is to be tried again by now.
func (t *term) tellAgain() {
	h := t.herald
	now := time.Now()
	if h.again.IsZero() || now.Before(h.again) {
		return
	}
	h.again = time.Time{}
	for name, d := range h.debts {
		switch {
		case d.again.IsZero():
		case !now.Before(d.again):
			d.again = time.Time{}
			h.queue = append(h.queue, name)
		case h.again.IsZero() || d.again.Before(h.again):
			h.again = d.again
		}
	}
	t.tellNext()
}
