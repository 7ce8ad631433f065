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
	now := t.now().UTC().Truncate(time.Millisecond)
	view, err := t.claimRun(j, def, v.record(j, t.s.self.ID, t.held.Revision, now), 0)
	return func(t *term) error {
		js := t.jobs[j.Name]
		if errors.Is(err, state.ErrLocked) {
			js.locked, err = true, nil // by a run that the status does not know; decide anew
		}
		return t.decided(js, v, view, err)
	}
}

// claimQueued makes a run ours that was pending, and starts it.
func (t *term) claimQueued(j *job, def state.Definition, id string) effect {
	as := t.s.attempts
	view := def.View
	run, rev, err := t.s.store.Run(as.recording, j.Name, id)
	switch {
	case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord):
		as.release()
		view, err = t.dropQueued(def, lostRecord(j.Name, id), rev, state.ReasonRecordLost)
	case err != nil:
		as.release()
	case run.Status != state.Pending: // the status was put back by hand
		as.release()
		view, err = t.s.store.Forget(as.recording, t.held, j.Name, id, def.View)
	default:
		now := t.now().UTC().Truncate(time.Millisecond)
		view, err = t.claimRun(j, def, begun(run, j, t.s.self.ID, t.held.Revision, now), rev)
	}
	return func(t *term) error {
		js := t.jobs[j.Name]
		switch {
		case errors.Is(err, state.ErrLocked): // by a run that the status does not know; others may be due meanwhile
			js.lockedUntil, err = time.Now().Add(maxPause), nil
			time.AfterFunc(maxPause, func() { t.tell(func(t *term) error { t.enqueue(js); return nil }) })
		case errors.Is(err, state.ErrNotOwner):
			js.reload = true
		}
		return t.settled(js, view, err)
	}
}

// claimRun claims a run and starts it, in the slot that was reserved.
func (t *term) claimRun(j *job, def state.Definition, run state.Run, prior int64) (view state.View, err error) {
	as := t.s.attempts
	defer as.claim(j.Name)()
	defer func() {
		if err != nil {
			as.release()
		}
	}()
	ctx, cancel := context.WithTimeout(as.recording, j.LockTTL)
	defer cancel()
	grant, err := as.leases.For(j.LockTTL).Acquire(ctx, j.lockMargin())
	if err != nil {
		return def.View, err
	}
	owned, view, err := t.s.store.Claim(as.recording, state.Claim{
		Term: t.held, Run: run, Prior: prior,
		UID: def.Spec.UID, View: def.View, SpecRev: def.SpecRev, ControlRev: def.ControlRev,
		Lease: grant.ID, Next: j.schedule.Next(maxTime(t.now(), run.Covers())),
	})
	if err == nil {
		as.start(attempt{job: j, owned: owned, view: view, grant: grant})
	}
	return view, err
}

// dropQueued takes a run out of the queue that will not be run; rev is the mod revision of its record, 0
// if there is none.
func (t *term) dropQueued(def state.Definition, run state.Run, rev int64, reason string) (state.View, error) {
	run.Status, run.Reason = state.Skipped, reason
	run.FinishedAt = t.now().UTC().Truncate(time.Millisecond)
	run.Instance, run.Term = t.s.self.ID, t.held.Revision
	return t.write(def, run, rev, def.View.Status.NextRunAt)
}

// lostRecord is all that is known of a run whose record was deleted or broken by hand.
func lostRecord(job, id string) state.Run {
	at, _ := state.RunIDTime(id)
	return state.Run{Job: job, ID: id, Trigger: state.BySchedule, ScheduledAt: at}
}

// merge has the run that was queued last stand for further scheduled times too. If they do not follow its
// own directly, since others in between have records of their own, another run waits for them.
func (t *term) merge(j *job, def state.Definition, v verdict) effect {
	queue := def.View.Status.Queue
	id := queue[len(queue)-1]
	view := def.View
	run, rev, err := t.s.store.Run(t.s.attempts.recording, j.Name, id)
	switch {
	case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord):
		view, err = t.dropQueued(def, lostRecord(j.Name, id), rev, state.ReasonRecordLost)
	case err != nil:
	case run.Status != state.Pending: // the status was put back by hand
		view, err = t.s.store.Forget(t.s.attempts.recording, t.held, j.Name, id, def.View)
	case !j.schedule.Next(run.Covers()).Equal(v.first):
		v.merge = false
		return t.recordVerdict(j, def, v)
	default:
		run.Count, run.Until = run.Times()+v.count, v.last
		view, err = t.write(def, run, rev, j.schedule.Next(maxTime(t.now(), v.last)))
	}
	return func(t *term) error {
		js := t.jobs[j.Name]
		if errors.Is(err, state.ErrNotOwner) {
			js.reload = true
		}
		return t.settled(js, view, err)
	}
}

// recordVerdict writes down that scheduled times are not run, or not now.
func (t *term) recordVerdict(j *job, def state.Definition, v verdict) effect {
	now := t.now().UTC().Truncate(time.Millisecond)
	view, err := t.write(def, v.record(j, t.s.self.ID, t.held.Revision, now), 0, j.schedule.Next(maxTime(now, v.last)))
	return func(t *term) error {
		return t.decided(t.jobs[j.Name], v, view, err)
	}
}

// write writes the record of a run that is not run, or not now.
func (t *term) write(def state.Definition, run state.Run, prior int64, next time.Time) (state.View, error) {
	view, err := t.s.store.Record(t.s.attempts.recording, state.Verdict{
		Term: t.held, Run: run, Prior: prior,
		UID: def.Spec.UID, View: def.View, SpecRev: def.SpecRev, ControlRev: def.ControlRev, Next: next,
	})
	if err != nil {
		return view, err
	}
	log := t.log.With(zap.String("job", run.Job), zap.String("run", run.ID), zap.Int64("times", run.Times()))
	if run.Status == state.Pending {
		log.Info("run waits until the job is idle", zap.Int("waiting", view.Status.Pending))
		return view, nil
	}
	log.Info("scheduled time not run", zap.String("status", string(run.Status)), zap.String("reason", run.Reason))
	t.s.observer.Observe(Recorded{Run: run, Status: view.Status})
	return view, nil
}

// decided takes the effect of a verdict. A run that has a record already was decided, whatever the
// cursor says.
func (t *term) decided(js *jobState, v verdict, view state.View, err error) error {
	if errors.Is(err, state.ErrRunExists) {
		js.floor = maxTime(js.floor, v.first)
	}
	return t.settled(js, view, err)
}
