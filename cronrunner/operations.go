package cronrunner

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// The operations of a term: each talks to etcd, beside the loop, and returns what the loop is to take
// over. None touches the loop's own state before that.

// claim makes a run ours that starts at an instant, which is now or a little later, and writes down with it what
// becomes of the scheduled times before: the last verdict is the run. The slot was reserved; it is given back unless a
// handler starts.
func (t *term) claim(j *job, def state.Definition, verdicts []verdict, at time.Time) effect {
	last, ahead := len(verdicts)-1, at.After(t.now())
	now := t.now().UTC().Truncate(time.Millisecond)
	claim := state.Claim{Run: verdicts[last].record(j, t.s.self.ID, t.held.Revision, at.UTC().Truncate(time.Millisecond))}
	for _, v := range verdicts[:last] {
		claim.Before = append(claim.Before, v.record(j, t.s.self.ID, t.held.Revision, now))
	}
	view, _, err := t.claimRun(j, def, claim)
	if err == nil {
		for i := range claim.Before {
			t.noteNotRun(&claim.Before[i], &def.View.Status, view)
		}
	}
	return func(t *term) error {
		js := t.jobs[j.Name]
		if js.pausedSeen && err == nil { // the watch was faster than the answer
			t.s.attempts.stopUnbegun(j.Name, errPaused)
		}
		if errors.Is(err, state.ErrLocked) {
			js.locked, err = !ahead, nil // by a run that the status does not know; decide anew, or when it is due
		}
		if errors.Is(err, state.ErrRunExists) && last > 0 {
			js.apart = true // to find out which of them has a record
			return t.settled(js, view, err)
		}
		return t.decided(js, verdicts[last], view, err)
	}
}

// claimQueued makes a run ours that was pending, and starts it.
func (t *term) claimQueued(j *job, def state.Definition, id string) effect {
	view, err := t.withQueued(def, id, func(run state.Run, rev int64) (state.View, error) {
		now := t.now().UTC().Truncate(time.Millisecond)
		view, _, err := t.claimRun(j, def, state.Claim{Run: begun(run, j, t.s.self.ID, t.held.Revision, now), Prior: rev})
		return view, err
	}, t.s.attempts.release)
	return func(t *term) error { return t.settledQueued(t.jobs[j.Name], view, err) }
}

// replaceQueued ends a run that waits, since a newer one does.
func (t *term) replaceQueued(def state.Definition, id string) effect {
	view, err := t.endQueued(def, id, func(run *state.Run) { run.Status, run.Reason = state.Skipped, state.ReasonReplaced })
	return func(t *term) error { return t.settledQueued(t.jobs[def.Spec.Name], view, err) }
}

// withQueued reads the record of a run that waits and does something with it. If the record does not say that
// it waits, it is put right instead, and the otherwise function called.
func (t *term) withQueued(def state.Definition, id string, do func(state.Run, int64) (state.View, error), otherwise func()) (state.View, error) {
	run, rev, err := t.s.store.Run(t.s.attempts.recording, def.Spec.Name, id)
	if err == nil && run.Status == state.Pending {
		return do(run, rev)
	}
	otherwise()
	switch {
	case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord):
		lost := lostRecord(def.Spec.Name, id)
		lost.Status, lost.Reason = state.Skipped, state.ReasonRecordLost
		return t.writeEnd(def, lost, rev)
	case err != nil:
		return def.View, err
	default: // the status was put back by hand
		return t.s.store.Forget(t.s.attempts.recording, t.held, def.Spec.Name, id, def.View)
	}
}

// endQueued ends a run that waits, as end says.
func (t *term) endQueued(def state.Definition, id string, end func(*state.Run)) (state.View, error) {
	return t.withQueued(def, id, func(run state.Run, rev int64) (state.View, error) {
		end(&run)
		return t.writeEnd(def, run, rev)
	}, func() {})
}

// writeEnd writes the record of a run that has waited and is not run; rev is its mod revision, 0 if it has none.
func (t *term) writeEnd(def state.Definition, run state.Run, rev int64) (state.View, error) {
	run.FinishedAt = t.now().UTC().Truncate(time.Millisecond)
	run.Instance, run.Term = t.s.self.ID, t.held.Revision
	return t.write(def, run, rev, def.View.Status.NextRunAt, nil)
}

// settledQueued takes the effect of an operation on a run that waits.
func (t *term) settledQueued(js *jobState, view state.View, err error) error {
	switch {
	case errors.Is(err, state.ErrLocked): // by a run that the status does not know; others may be due meanwhile
		t.leaveLocked(js)
		err = nil
	case errors.Is(err, state.ErrNotOwner):
		js.reload = true
	}
	return t.settled(js, view, err)
}

// leaveLocked has a job start nothing for a while.
func (t *term) leaveLocked(js *jobState) {
	js.lockedUntil = time.Now().Add(maxPause)
	time.AfterFunc(maxPause, func() { t.tell(func(t *term) error { t.enqueue(js); return nil }) })
}

// claimRun claims a run and starts it, in the slot that was reserved. Of the claim it is given what is of the run.
func (t *term) claimRun(j *job, def state.Definition, c state.Claim) (view state.View, rev int64, err error) {
	as := t.s.attempts
	defer as.claim(j.Name)()
	defer func() {
		if err != nil {
			as.release()
		}
	}()
	traced := t.s.tracing.begin(&c.Run)
	claimed := traced.commit("claim")
	ctx, cancel := context.WithTimeout(as.recording, j.LockTTL)
	defer cancel()
	grant, err := as.leases.For(j.LockTTL).Acquire(ctx, j.lockMargin())
	if err != nil {
		return def.View, 0, err
	}
	st := &def.View.Status
	left, decided := j.runsLeft(st), st.Cursor
	if c.Run.Trigger.Scheduled() {
		decided = maxTime(decided, c.Run.Covers())
		if c.Prior == 0 {
			left--
		}
	}
	c.Term, c.UID, c.View, c.SpecRev, c.ControlRev = t.held, def.Spec.UID, def.View, def.SpecRev, def.ControlRev
	c.Lease, c.Shared, c.Next, c.Alert = grant.ID, j.Overlap.Policy == Allow, j.nextDue(t.now(), decided, left), alertOf(&def)
	owned, view, err := t.s.store.Claim(as.recording, c)
	if err == nil {
		claimed(nil)
		as.start(attempt{job: j, owned: owned, view: view, grant: grant, trace: traced})
	}
	return view, owned.Revision, err
}

// lostRecord is all that is known of a run whose record was deleted or broken by hand.
func lostRecord(job, id string) state.Run {
	at, _ := state.RunIDTime(id)
	run := state.Run{Job: job, ID: id, Trigger: state.BySchedule, ScheduledAt: at}
	if _, suffix, _ := strings.Cut(id, "-"); suffix != "" {
		run.Trigger = state.ByHand // only what people ask for has one
	}
	return run
}

// merge has the run that was queued last stand for further scheduled times too. If they do not follow its
// own directly, since others in between have records of their own, another run waits for them.
func (t *term) merge(j *job, def state.Definition, v verdict) effect {
	queue := def.View.Status.Queue
	view, err := t.withQueued(def, queue[len(queue)-1], func(run state.Run, rev int64) (state.View, error) {
		if !run.Trigger.Scheduled() || !j.schedule.Next(run.Covers()).Equal(v.first) {
			return t.writeVerdict(j, def, v)
		}
		run.Count, run.Until = run.Times()+v.count, v.last
		return t.write(def, run, rev, j.nextDue(t.now(), v.last, j.runsLeft(&def.View.Status)), nil)
	}, func() {})
	return func(t *term) error {
		js := t.jobs[j.Name]
		if errors.Is(err, state.ErrRunExists) {
			return t.decided(js, v, view, err)
		}
		return t.settledQueued(js, view, err)
	}
}

// recordVerdict writes down that scheduled times are not run, or not now.
func (t *term) recordVerdict(j *job, def state.Definition, v verdict) effect {
	view, err := t.writeVerdict(j, def, v)
	return func(t *term) error {
		return t.decided(t.jobs[j.Name], v, view, err)
	}
}

func (t *term) writeVerdict(j *job, def state.Definition, v verdict) (state.View, error) {
	now := t.now().UTC().Truncate(time.Millisecond)
	left := j.runsLeft(&def.View.Status)
	if v.status == state.Pending {
		left--
	}
	return t.write(def, v.record(j, t.s.self.ID, t.held.Revision, now), 0, j.nextDue(now, v.last, left), nil)
}

// write writes the record of a run that is not run, or not now.
func (t *term) write(def state.Definition, run state.Run, prior int64, next time.Time, acted *state.Acted) (state.View, error) {
	view, err := t.s.store.Record(t.s.attempts.recording, state.Verdict{
		Term: t.held, Run: run, Prior: prior,
		UID: def.Spec.UID, View: def.View, SpecRev: def.SpecRev, ControlRev: def.ControlRev, Next: next, Acted: acted,
		Alert: alertOf(&def),
	})
	if err != nil {
		return view, err
	}
	if run.Status == state.Pending {
		t.logOf(&run).Info("run waits until the job is idle", zap.Int("waiting", view.Status.Pending))
		return view, nil
	}
	t.noteNotRun(&run, &def.View.Status, view)
	return view, nil
}

func (t *term) logOf(run *state.Run) *zap.Logger {
	return t.log.With(zap.String("job", run.Job), zap.String("run", run.ID), zap.Int64("times", run.Times()))
}

// noteNotRun says that a run is on record that was not run; view is what stands after that.
func (t *term) noteNotRun(run *state.Run, before *state.JobStatus, view state.View) {
	t.logOf(run).Info("not run", zap.String("status", string(run.Status)), zap.String("reason", run.Reason))
	t.s.noteIncidents(run, before, &view.Status)
	t.s.observer.Observe(Recorded{Run: *run, Status: view.Status, Revision: view.Revision})
}

// decided takes the effect of a verdict. A run that has a record already was decided, whatever the
// cursor says.
func (t *term) decided(js *jobState, v verdict, view state.View, err error) error {
	if errors.Is(err, state.ErrRunExists) {
		js.floor = maxTime(js.floor, v.first)
	}
	return t.settled(js, view, err)
}
