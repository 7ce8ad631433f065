package cronrunner

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// The operations of a term: each talks to etcd, beside the loop, and returns what the loop is to take
// over. None touches the loop's own state before that.

// claim makes a run ours and starts it. The slot was reserved; it is given back unless a handler starts.
func (t *term) claim(j *job, def state.Definition, v verdict) effect {
	as := t.s.attempts
	owned, view, grant, err := t.claimRun(j, def, v)
	if err == nil {
		as.start(attempt{job: j, owned: owned, view: view, grant: grant})
	} else {
		as.release()
	}
	return func(t *term) error {
		js := t.jobs[j.Name]
		if errors.Is(err, state.ErrLocked) {
			js.locked, err = true, nil // by a run that the status does not know; decide anew
		}
		return t.decided(js, v, view, err)
	}
}

func (t *term) claimRun(j *job, def state.Definition, v verdict) (state.Owned, state.View, *state.Grant, error) {
	defer t.s.attempts.claim(j.Name)()
	ctx, cancel := context.WithTimeout(t.s.attempts.recording, j.LockTTL)
	defer cancel()
	grant, err := t.s.attempts.leases.For(j.LockTTL).Acquire(ctx, j.lockMargin())
	if err != nil {
		return state.Owned{}, def.View, nil, err
	}
	now := t.now().UTC().Truncate(time.Millisecond)
	owned, view, err := t.s.store.Claim(t.s.attempts.recording, state.Claim{
		Term: t.held, Run: v.record(j, t.s.self.ID, t.held.Revision, now),
		UID: def.Spec.UID, View: def.View, SpecRev: def.SpecRev, ControlRev: def.ControlRev,
		Lease: grant.ID, Next: j.schedule.Next(maxTime(now, v.last)),
	})
	return owned, view, grant, err
}

// recordVerdict writes down that scheduled times are not run.
func (t *term) recordVerdict(j *job, def state.Definition, v verdict) effect {
	now := t.now().UTC().Truncate(time.Millisecond)
	run := v.record(j, t.s.self.ID, t.held.Revision, now)
	view, err := t.s.store.Record(t.s.attempts.recording, state.Verdict{
		Term: t.held, Run: run,
		UID: def.Spec.UID, View: def.View, SpecRev: def.SpecRev, ControlRev: def.ControlRev,
		Next: j.schedule.Next(maxTime(now, v.last)),
	})
	if err == nil {
		t.log.Info("scheduled time not run", zap.String("job", run.Job), zap.String("run", run.ID), zap.String("status", string(run.Status)),
			zap.String("reason", run.Reason), zap.Int64("times", run.Times()))
		t.s.observer.Observe(Recorded{Run: run, Status: view.Status})
	}
	return func(t *term) error {
		return t.decided(t.jobs[j.Name], v, view, err)
	}
}

// decided takes the effect of a verdict. A run that has a record already was decided, whatever the
// cursor says.
func (t *term) decided(js *jobState, v verdict, view state.View, err error) error {
	if errors.Is(err, state.ErrRunExists) {
		js.floor = maxTime(js.floor, v.first)
	}
	return t.settled(js, view, err)
}
