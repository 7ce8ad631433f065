package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// Attempt is what an attempt knows of itself, in a process with the library or in a command.
type Attempt interface {
	Job() string
	ID() string
	Attempt() int
	FencingToken() int64
	// Restored is the last checkpoint; 0 if there is none.
	Restored(ctx context.Context) (int64, error)
	// Save returns nil once the checkpoint is durable.
	Save(ctx context.Context, value int64) error
}

// Place is where an attempt goes on, and what it writes to.
type Place struct {
	Instance string
	Dir      string // of the test, with its target
	History  *History
}

const (
	tick      = 50 * time.Millisecond
	saveLimit = time.Second // of a checkpoint of one that does not hear that it is to stop
)

var errNoLuck = errors.New("no luck")

// Do is the work of an attempt. Its context ends when it is to stop.
func (p *Place) Do(ctx context.Context, work Work, run Attempt) error {
	a := &doing{Place: p, work: work, run: run}
	if work.Checkpoints {
		var err error
		if a.value, err = run.Restored(ctx); err != nil {
			return err // it has not begun
		}
	}
	a.say(checker.Event{Kind: checker.Start, Value: a.value})
	err := a.steps(ctx)
	if err == nil {
		switch dice := rand.IntN(100); {
		case dice < work.Fails:
			err = errNoLuck
		case dice < work.Fails+work.Panics:
			a.say(checker.Event{Kind: checker.End, Outcome: checker.Failed})
			panic(errNoLuck)
		}
	}
	outcome := checker.OK
	if err != nil {
		outcome = checker.Failed
	}
	a.say(checker.Event{Kind: checker.End, Outcome: outcome})
	return err
}

// doing is an attempt that goes on.
type doing struct {
	*Place

	work  Work
	run   Attempt
	value int64 // of the last checkpoint
	told  bool
}

func (a *doing) event(e checker.Event) checker.Event {
	e.Job, e.Run, e.Attempt, e.Token, e.Instance = a.run.Job(), a.run.ID(), a.run.Attempt(), a.run.FencingToken(), a.Instance
	return e
}

func (a *doing) say(e checker.Event) { a.History.Add(a.event(e)) }

// steps works until the time is up, or until it is told to stop and has.
func (a *doing) steps(ctx context.Context) error {
	d := a.work.Min
	if a.work.Max > d {
		d += rand.N(a.work.Max - d)
	}
	end := time.NewTimer(d)
	defer end.Stop()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	stop := ctx.Done()
	for n := 1; ; n++ {
		select {
		case <-end.C:
			return nil
		case <-stop:
			a.say(checker.Event{Kind: checker.Told})
			a.told = true
			if !a.work.Stubborn {
				return a.wind(context.Cause(ctx))
			}
			stop = nil
		case <-ticker.C:
			a.step(ctx, n)
		}
	}
}

func (a *doing) step(ctx context.Context, n int) {
	switch {
	case a.work.Silent:
	case a.work.Checkpoints && n%4 == 0:
		a.save(ctx)
	case a.work.Writes && n%4 == 2:
		fence := a.run.Job()
		if a.Shared(fence) {
			fence += "/" + a.run.ID()
		}
		_ = writeTo(a.Dir, fence, a.event(checker.Event{}))
	case n%2 == 1:
		a.say(checker.Event{Kind: checker.Beat})
	}
}

// Shared tells the jobs whose runs may overlap: their target compares the tokens of one run.
func (p *Place) Shared(job string) bool {
	return len(job) >= len("allow") && job[:len("allow")] == "allow"
}

func (a *doing) save(ctx context.Context) {
	if a.told {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
		defer cancel()
	}
	a.say(checker.Event{Kind: checker.Asking, Value: a.value + 1})
	called := Mono()
	if a.run.Save(ctx, a.value+1) == nil {
		a.value++
		a.say(checker.Event{Kind: checker.Saved, Value: a.value, Called: called})
	}
}

// wind is how it stops: as late as it may.
func (a *doing) wind(cause error) error {
	for until := Mono() + int64(a.work.Lag); Mono() < until; time.Sleep(tick) {
		a.say(checker.Event{Kind: checker.Beat})
	}
	return cause
}
