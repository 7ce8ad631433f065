package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// recoverJob looks at the live runs of a job. One that has a lock goes on somewhere, whatever its record
// says, and is left alone: only the lock's lease tells whether its instance lives. One that has none has
// lost its instance, unless it is one of ours that is still stopping. j is nil when the job is not among
// ours: then its runs can only be ended.
//
// A lock can go while its instance lives, when its lease is revoked from outside or by an etcd in trouble.
// Then the handler has been told to stop, and is given its grace to do so before anyone goes on with the
// run. That is as good as can be done from here: the instance may hear of the loss later than we do, and
// only fencing tokens are safe from it. lostAt is when the loss was seen; zero before.
func (t *term) recoverJob(name string, j *job, lostAt map[string]time.Time, slot bool) effect {
	r := recovery{term: t, job: j, lostAt: lostAt, slot: slot, stopping: make(map[string]time.Time)}
	foreign, view, err := r.live(name)
	if r.slot {
		t.s.attempts.release()
	}
	return func(t *term) error {
		js := t.jobs[name]
		js.recovering = false
		js.lostAt = r.stopping
		switch {
		case errors.Is(err, errStopping):
			js.recover = true
			soon := stopTime(j)
			for _, at := range r.stopping {
				soon = min(soon, stopTime(j)-time.Since(at))
			}
			t.setForeign(js, foreign)
			err := t.settled(js, view, nil)
			t.retryIn(js, max(soon, firstPause))
			return err
		case errors.Is(err, errNoSlot):
			js.recover, js.recoverInSlot = true, true
			return t.settled(js, view, nil)
		case errors.Is(err, errReload):
			js.reload, js.recover = true, true
		case errors.Is(err, state.ErrLocked), errors.Is(err, state.ErrNotOwner):
			js.recover, err = true, nil // somebody was faster; look again
		case err != nil:
			js.recover = true
		default:
			t.setForeign(js, foreign)
		}
		return t.settled(js, view, err)
	}
}

// recovery is a look at the live runs of a job.
type recovery struct {
	*term

	job      *job
	lostAt   map[string]time.Time // when a run was first seen without its lock though its instance lives
	stopping map[string]time.Time // the same, as it is now
	slot     bool                 // it has one for the run that it takes over first
}

// live does the work of recoverJob. foreign are the locks under which runs go on elsewhere.
func (t *recovery) live(name string) (foreign []string, view state.View, err error) {
	as, j := t.s.attempts, t.job
	defs, err := t.s.store.Definitions(as.recording, []string{name})
	if err != nil {
		return nil, state.View{}, err
	}
	def := defs[name]
	if def.Broken != nil || def.SpecRev == 0 {
		return nil, def.View, errReload
	}
	if j == nil && len(def.View.Status.Queue) > 0 {
		if err := t.dropQueue(&def); err != nil {
			return nil, def.View, err
		}
	}
	view = def.View
	var late error
	for _, id := range def.View.Status.Live {
		if as.has(name, id) || mutateRecovery {
			continue
		}
		lock, err := t.s.store.LockOf(as.recording, name, id)
		if lock != nil && !lock.Shared && lock.Run != id && j != nil && j.Overlap.Policy == Allow {
			lock = nil // another run's, from before others were allowed beside it
		}
		switch {
		case err != nil:
			return nil, view, err
		case lock != nil && lock.Instance != t.s.self.ID:
			foreign = append(foreign, lock.Key)
			continue
		case lock != nil:
			return nil, view, t.clearOwnLock(lock)
		}
		now, fault := t.run(def, view, id)
		switch {
		case errors.Is(fault, errStopping):
			late = fault // the others need not wait for it
		case fault != nil:
			return nil, now, fault
		}
		view = now
	}
	return foreign, view, late
}

// dropQueue ends the pending runs of a job that is not among ours.
func (t *term) dropQueue(def *state.Definition) error {
	for _, id := range def.View.Status.Queue {
		view, err := t.endQueued(*def, id, func(run *state.Run) { run.Status, run.Reason = state.Skipped, state.ReasonRetired })
		if err != nil {
			return err
		}
		def.View = view
	}
	return nil
}

// clearOwnLock deletes a lock of this instance under which nothing is executed. It is what an earlier try
// of a claim leaves behind that was applied after a later try was refused, or an attempt that could not
// give it back. Nobody else would: its lease is alive, for it is ours.
func (t *term) clearOwnLock(lock *state.HeldLock) error {
	as := t.s.attempts
	if as.claiming(lock.Job) || as.has(lock.Job, lock.Run) {
		return errStopping // its claim is not settled, or it is executed after all
	}
	t.log.Warn("clearing a lock of this instance under which nothing runs", zap.String("job", lock.Job), zap.String("run", lock.Run))
	if err := t.s.store.Unlock(as.recording, lock.Owned()); err != nil {
		return err
	}
	return state.ErrLocked // it was; look again
}

// run goes on with a run that has lost its instance, or ends it, as its job says.
func (t *recovery) run(def state.Definition, view state.View, id string) (state.View, error) {
	as, j := t.s.attempts, t.job
	lostAt, seen := t.lostAt[id]
	if !seen {
		lostAt = time.Now()
	}
	name := def.Spec.Name
	lost, rev, err := t.s.store.Run(as.recording, name, id)
	switch {
	case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord):
		// Deleted or broken by hand: what it said is gone, but it is owed an end.
		lost = lostRecord(name, id)
		lost.Status = state.Running
	case err != nil:
		return view, err
	case lost.Status.Final(): // it ended since the status was read, or the status was put back by hand
		running := lost
		running.Status = state.Running
		return t.s.store.Abandon(as.recording, t.held, state.Owned{Run: running, UID: def.Spec.UID, Revision: rev, Alert: alertOf(&def)}, lost, view)
	}
	if lost.Instance != "" && lost.Instance != t.s.self.ID && time.Since(lostAt) < stopTime(j) {
		if lives, err := t.s.store.Present(as.recording, lost.Instance); err != nil || lives {
			t.stopping[id] = lostAt
			return view, errors.Join(err, errStopping)
		}
	}
	now := t.now().UTC().Truncate(time.Millisecond)
	was := state.Owned{
		Run: lost, UID: def.Spec.UID, Revision: rev, Scope: def.Spec.Checkpoint, Shared: j != nil && j.Overlap.Policy == Allow,
		Alert: alertOf(&def),
	}
	if cause := t.notToGoOn(j, def, id); cause != nil {
		end := canceledLost(lost, cause, now)
		view, err = t.s.store.Abandon(as.recording, t.held, was, end, view)
		if err == nil {
			t.log.Warn("run of a lost instance is canceled", zap.String("job", name), zap.String("run", id), zap.Int("attempt", lost.Attempt), zap.NamedError("cause", cause))
			t.s.observer.Observe(Recorded{Run: end, Status: view.Status, Revision: view.Revision})
		}
		return view, err
	}
	why, resumable := mayResume(j, &lost)
	if !resumable {
		end := failLost(lost, why, now)
		view, err = t.s.store.Abandon(as.recording, t.held, was, end, view)
		if err == nil {
			t.log.Warn("run of a lost instance has failed", zap.String("job", name), zap.String("run", id), zap.Int("attempt", lost.Attempt), zap.String("why", why))
			t.s.noteIncidents(&end, &def.View.Status, &view.Status)
			t.s.observer.Observe(Recorded{Run: end, Status: view.Status, Revision: view.Revision})
		}
		return view, err
	}
	return t.takeOver(was, view, now)
}

// notToGoOn is why a run of a lost instance is canceled instead of resumed; nil if it is not.
func (t *term) notToGoOn(j *job, def state.Definition, id string) error {
	if r, ok := t.s.attempts.toBeCanceled(def.Spec.Name, id); ok {
		return cancelCause(&r)
	}
	if j != nil && j.Overlap.Policy == Replace && len(def.View.Status.Queue) > 0 && !def.Control.Paused {
		return ErrReplaced
	}
	return nil
}

func (t *recovery) takeOver(was state.Owned, view state.View, now time.Time) (state.View, error) {
	as, j := t.s.attempts, t.job
	if !t.slot && !as.reserve() {
		return view, errNoSlot
	}
	t.slot = false
	defer as.claim(j.Name)()
	ctx, cancel := context.WithTimeout(as.recording, j.LockTTL)
	defer cancel()
	grant, err := as.leases.For(j.LockTTL).Acquire(ctx, j.lockMargin())
	if err != nil {
		as.release()
		return view, err
	}
	next := nextAttempt(was.Run, j, t.s.self.ID, t.held.Revision, now)
	traced := t.s.tracing.begin(&next)
	claimed := traced.commit("take over")
	owned, view, err := t.s.store.TakeOver(as.recording, state.Succession{
		Term: t.held, Lost: was, Next: next, View: view, Lease: grant.ID, Shared: j.Overlap.Policy == Allow,
	})
	if err != nil {
		as.release()
		return view, err
	}
	t.log.Warn("run of a lost instance goes on here", zap.String("job", j.Name), zap.String("run", next.ID),
		zap.Int("attempt", next.Attempt), zap.String("lost", was.Run.Instance))
	if next.Recoveries > was.Run.Recoveries {
		t.s.observer.Observe(Recovered{Run: next})
	}
	claimed(nil)
	as.start(attempt{job: j, owned: owned, view: view, grant: grant, trace: traced})
	return view, nil
}

// errStopping postpones the recovery of a run whose handler may still be stopping.
var errStopping = errors.New("its instance lives and may still be stopping it")

// stopTime is how long a handler may take to stop after its lock has gone.
func stopTime(j *job) time.Duration {
	if j == nil {
		return MaxGrace + lockSlack
	}
	return j.Grace + lockSlack
}

// errReload is a job whose status or records are not what they were when it was decided to recover it.
var errReload = errors.New("the job's records have changed")

// errNoSlot postpones a recovery until it is its job's turn for a slot.
var errNoSlot = errors.New("no slot is free for another attempt")

// mayResume says whether a run of a lost instance may go on, and if not, why.
func mayResume(j *job, r *state.Run) (why string, ok bool) {
	switch {
	case j == nil:
		return "its job is not among the leader's jobs", false
	case r.Attempt == 0:
		return "its record was deleted or cannot be decoded", false
	case !r.RetryAt.IsZero():
		return "", true // it was between two attempts: nothing was cut off
	case j.Recovery.Policy == Fail:
		return "its job is not resumed (recovery: fail)", false
	case r.Recoveries >= j.Recovery.Max:
		return fmt.Sprintf("it was recovered %d times already", r.Recoveries), false
	default:
		return "", true
	}
}

// failLost is the record of a run that ended with its instance.
func failLost(r state.Run, why string, now time.Time) state.Run {
	r.Status, r.Reason = state.Failed, state.ReasonInstanceLost
	when := "during"
	if !r.RetryAt.IsZero() {
		when = "after"
	}
	r.Error = fmt.Sprintf("instance %s was lost %s attempt %d; %s", orDefault(r.Instance, "?"), when, r.Attempt, why)
	r.RetryAt, r.RetryInMS = time.Time{}, 0
	r.FinishedAt = now
	if !r.StartedAt.IsZero() {
		r.DurationMS = max(now.Sub(r.StartedAt).Milliseconds(), 0)
	}
	return r
}

// nextAttempt is the record of the attempt after the lost one. If the run was between two attempts, none was
// lost: it goes on waiting for its next.
func nextAttempt(r state.Run, j *job, instance string, term int64, now time.Time) state.Run {
	if !r.RetryAt.IsZero() {
		r.Instance, r.Term = instance, term
		return r
	}
	r.Attempts = appendAttempt(r.Attempts, state.Attempt{
		Attempt: r.Attempt, Instance: r.Instance, FencingToken: r.FencingToken,
		StartedAt: r.StartedAt, EndedAt: now, Reason: state.ReasonInstanceLost,
	})
	r.Attempt++
	r.Recoveries++
	r.Instance, r.Term, r.StartedAt, r.FencingToken = instance, term, now, 0
	r.TimeoutMS = j.Timeout.Milliseconds()
	return r
}

// setForeign notes the locks under which runs of js go on elsewhere. While there is one such job, the locks are
// watched, so that their end is noticed; otherwise nothing is.
func (t *term) setForeign(js *jobState, locks []string) {
	js.foreign = locks
	elsewhere := false
	for _, other := range t.jobs {
		elsewhere = elsewhere || len(other.foreign) > 0
	}
	switch {
	case !elsewhere:
		t.stopWatchingLocks()
	case t.watchingLocks == nil:
		t.watchLocks()
	}
}

func (t *term) stopWatchingLocks() {
	if t.watchingLocks != nil {
		t.watchingLocks()
		t.watchingLocks = nil
	}
}

// watchLocks has each job with a run elsewhere looked at when its lock vanishes.
func (t *term) watchLocks() {
	keys := t.s.store.Keys()
	ctx, cancel := context.WithCancel(t.s.attempts.recording)
	t.watchingLocks = cancel
	// A job whose recovery is under way may have been read before the lock went, so it is looked at again.
	vanished := func(js *jobState, gone func(lock string) bool) {
		if js.recovering || slices.ContainsFunc(js.foreign, gone) {
			js.recover = true
			t.enqueue(js)
		}
	}
	t.s.attempts.work.Go(func() {
		_ = t.s.store.Follow(ctx, keys.Locks(), state.Events{
			List: func(kvs []*mvccpb.KeyValue) {
				there := make(map[string]bool, len(kvs))
				for _, kv := range kvs {
					there[string(kv.Key)] = true
				}
				t.tell(func(t *term) error {
					for _, js := range t.jobs {
						vanished(js, func(lock string) bool { return !there[lock] })
					}
					return nil
				})
			},
			Event: func(ev *clientv3.Event) {
				if ev.Type != mvccpb.Event_DELETE {
					return
				}
				deleted := string(ev.Kv.Key)
				t.tell(func(t *term) error {
					if js := t.jobs[keys.JobOfLock(deleted)]; js != nil {
						vanished(js, func(lock string) bool { return lock == deleted })
					}
					return nil
				})
			},
		}, clientv3.WithFilterPut())
	})
}
