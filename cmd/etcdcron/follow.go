package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Following what was asked for: first the request, until somebody acts on it, and then the run.

// watchKey calls see with what stands at a key, nil for nothing, and with each change of it, until see has
// seen enough. Its error is ctx's cause: an etcd that does not answer is waited for.
func (c *cluster) watchKey(ctx context.Context, key string, see func(kv *mvccpb.KeyValue) (enough bool)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	enough := false
	look := func(kv *mvccpb.KeyValue) {
		if !enough && see(kv) {
			enough = true
			stop()
		}
	}
	err := c.store.Follow(ctx, key, state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			if len(kvs) > 0 && string(kvs[0].Key) == key { // others begin with it
				look(kvs[0])
			} else {
				look(nil)
			}
		},
		Event: func(ev *clientv3.Event) {
			switch {
			case string(ev.Kv.Key) != key:
			case ev.Type == mvccpb.Event_DELETE:
				look(nil)
			default:
				look(ev.Kv)
			}
		},
	})
	if enough {
		return nil
	}
	return err
}

// untilActed waits until a request was acted on, or withdrawn: then it is gone. see, if not nil, is called
// with what is left of it.
func (c *cluster) untilActed(ctx context.Context, id string, see func(state.Standing)) error {
	return c.watchKey(ctx, c.keys.Request(id), func(kv *mvccpb.KeyValue) bool {
		if kv == nil {
			return true
		}
		if r, err := state.DecodeRequest(kv); err == nil && see != nil {
			see(r)
		}
		return false
	})
}

// watchRun calls see with a run's record, and with each change of it, until see has seen enough, and returns
// the last. Its error is ErrNotFound when there is no record, or none any more.
func (c *cluster) watchRun(ctx context.Context, job, id string, see func(*state.Run) (enough bool)) (run state.Run, err error) {
	var bad error
	err = c.watchKey(ctx, c.keys.Run(job, id), func(kv *mvccpb.KeyValue) bool {
		if kv == nil {
			bad = fmt.Errorf("run %s of job %s: %w", id, job, state.ErrNotFound)
			return true
		}
		if run, bad = state.DecodeRun(kv); bad != nil {
			return true
		}
		return see(&run)
	})
	return run, errors.Join(err, bad)
}

func asItStands(*state.Run) bool { return true }
func over(r *state.Run) bool     { return r.Status.Final() }

// start asks for a run and shows what came of it: as soon as it was acted on or, when following, when the run
// is over.
func (c *cluster) start(ctx context.Context, follow bool, ask func(context.Context) (state.Request, error)) error {
	asking, stop := c.limited(ctx)
	defer stop()
	r, err := ask(asking)
	if err != nil {
		return err
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	err = c.untilActed(limited, r.ID, nil)
	if err != nil && ctx.Err() == nil {
		if !follow {
			err := c.o.show(steer.Asked{Job: r.Job, ID: r.ID, Status: steer.Requested}, "")
			c.hintWaiting(ctx)
			return err
		}
		c.hintWaiting(ctx)
		err = c.untilActed(ctx, r.ID, nil)
	}
	if err != nil {
		return &failure{
			err: fmt.Errorf("interrupted; run %s of job %s was asked for all the same", r.ID, r.Job),
			try: fmt.Sprintf("etcdcron cancel %s %s takes it back", r.Job, r.ID),
		}
	}
	if follow {
		return c.followRun(ctx, r.Job, r.ID)
	}
	run, err := c.watchRun(ctx, r.Job, r.ID, asItStands)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return notBegun(r.Job, r.ID)
	case err != nil:
		return err
	case run.Status == state.Skipped:
		return c.notRun(ctx, &run, exitFailed)
	}
	return c.o.show(steer.Came(&run), standingText(&run))
}

// notBegun is the error of a request that is gone and that no run came of.
func notBegun(job, id string) error {
	return &failure{
		err: fmt.Errorf("run %s of job %s will not be: its request was withdrawn, or its job removed", id, job),
		try: "etcdcron describe " + job,
	}
}

// standingText is what there is to say of a run that was just begun.
func standingText(r *state.Run) string {
	switch {
	case r.Status == state.Pending:
		return "it waits until the job is idle"
	case r.Reason != "":
		return inspect.Reason(r.Reason)
	}
	return ""
}

// notRun shows a run that was skipped, and why.
func (c *cluster) notRun(ctx context.Context, r *state.Run, code int) error {
	if !c.o.forPeople() { // they read the error
		if err := c.o.show(steer.Came(r), ""); err != nil {
			return err
		}
	}
	why, try := inspect.Reason(r.Reason), "etcdcron describe "+r.Job
	def, err := c.store.Job(ctx, r.Job)
	if err == nil {
		why, try = whyNot(r, &def)
	}
	return &failure{err: fmt.Errorf("run %s of job %s was skipped: %s", r.ID, r.Job, why), code: code, try: try}
}

// whyNot says why a run that was asked for was skipped, and what can be done.
func whyNot(r *state.Run, def *state.Definition) (why, try string) {
	spec, live := &def.Spec, def.View.Status.Live
	describe := "etcdcron describe " + r.Job
	switch r.Reason {
	case state.ReasonOverlap:
		why, try = "the job still runs, and its overlap policy is "+overlapText(spec), "again when it is idle; "+describe+" shows it"
		if len(live) > 0 {
			try = fmt.Sprintf("again when it is idle; etcdcron cancel %s %s ends what runs", r.Job, live[0])
		}
		return why, try
	case state.ReasonQueueFull:
		waiting := fmt.Sprintf("%d runs wait", spec.Limit)
		if spec.Limit == 1 {
			waiting = "a run waits"
		}
		return waiting + " already, as many as may", "again later; " + describe + " shows what waits"
	case state.ReasonCoalesced:
		return "one waits already, and stands for it too", describe + " shows what waits"
	case state.ReasonPaused:
		return "the job was paused meanwhile", "etcdcron resume " + r.Job
	}
	return inspect.Reason(r.Reason), describe
}

// followRun shows what a run prints, and how it ends. It goes on until the run is over or ctx ends, which
// does not end the run.
func (c *cluster) followRun(ctx context.Context, job, id string) error {
	run, err := c.untilOver(ctx, job, id)
	switch {
	case err != nil:
		return err
	case run.Status == state.Skipped:
		return c.notRun(ctx, run, exitRunFailed)
	}
	return c.o.showEnd(run)
}

// untilOver waits until a run is over, and shows meanwhile what becomes of it and how far it is.
func (c *cluster) untilOver(ctx context.Context, job, id string) (*state.Run, error) {
	line := c.o.newChangingLine()
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { c.watchProgress(watching, job, id, line) })
	var last state.Run
	run, err := c.watchRun(ctx, job, id, func(r *state.Run) bool {
		line.aside(func() { c.o.hintChange(&last, r) })
		last = *r
		return over(r)
	})
	stop()
	watchers.Wait()
	line.remove()
	switch {
	case errors.Is(err, state.ErrNotFound) && last.ID == "":
		return nil, notBegun(job, id)
	case errors.Is(err, state.ErrNotFound):
		return nil, &failure{err: fmt.Errorf("the record of run %s of job %s is gone", id, job), try: "etcdcron describe " + job}
	case err != nil && ctx.Err() != nil:
		return nil, &failure{
			err: fmt.Errorf("interrupted; run %s of job %s goes on", id, job),
			try: fmt.Sprintf("etcdcron cancel %s %s ends it", job, id),
		}
	}
	return &run, err
}

// watchProgress shows how far a run is until ctx ends.
func (c *cluster) watchProgress(ctx context.Context, job, id string, line *changingLine) {
	if !c.o.forPeople() {
		return
	}
	_ = c.watchKey(ctx, c.keys.Progress(job, id), func(kv *mvccpb.KeyValue) bool { // until ctx ends
		var p state.Progress
		if kv != nil && json.Unmarshal(kv.Value, &p) == nil {
			line.show(shortProgress(&p, barWidth))
		}
		return false
	})
}

// hintChange tells a person who follows a run what has become of it.
func (o *options) hintChange(was, r *state.Run) {
	switch {
	case !r.RetryAt.IsZero():
		if !r.RetryAt.Equal(was.RetryAt) {
			o.hintf("attempt %d of run %s failed: %s; the next one begins %s", r.Attempt, r.ID, firstLine(r.Error), term.Ago(r.RetryAt, o.now()))
		}
	case r.Status == state.Pending && was.Status != state.Pending:
		o.hintf("run %s waits until the job is idle", r.ID)
	case r.Status == state.Running && was.Status != state.Running:
		o.hintf("run %s runs at %s", r.ID, r.Instance)
	case r.Status == state.Running && r.Attempt != was.Attempt:
		o.hintf("attempt %d of run %s runs at %s", r.Attempt, r.ID, r.Instance)
	}
}

// showEnd shows the end of a run that was followed: to people its output and how it ended, as JSON its record.
func (o *options) showEnd(r *state.Run) error {
	err := one(o, r, func() error {
		var b bytes.Buffer
		writeText(&b, r.Output, "")
		if _, err := o.stdout.Write(b.Bytes()); err != nil || r.Status != state.Succeeded {
			return err // the error says how it ended
		}
		return o.show(steer.Came(r), "it took "+millis(r.DurationMS))
	})
	if err != nil || r.Status == state.Succeeded {
		return err
	}
	return runFailed(r)
}

// runFailed is the error of a run that did not succeed.
func runFailed(r *state.Run) error {
	text := fmt.Sprintf("run %s of job %s %s", r.ID, r.Job, inspect.Ended(r))
	if note := noteCell(r, false); note != "" {
		text += ": " + note
	}
	return &failure{err: errors.New(text), code: exitRunFailed, try: fmt.Sprintf("etcdcron retry %s %s does it once more", r.Job, r.ID)}
}
