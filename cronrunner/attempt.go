package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// attempt is one try of a run that this instance owns.
type attempt struct {
	job   *job
	owned state.Owned
	view  state.View   // the job's status as it was at the claim
	grant *state.Grant // what the lock hangs on
	trace *runTrace
}

// maxLogged is how much of an error goes into the log; the record has more.
const maxLogged = 500

// errUnreturned is a handler that ended its goroutine instead of returning.
var errUnreturned = errors.New("the handler ended its goroutine with runtime.Goexit")

// panicError is a handler's panic, with the stack of where it happened.
type panicError struct{ text string }

func (e *panicError) Error() string { return e.text }

// result is how a handler ended.
type result struct {
	err       error
	cause     error         // why its context had ended by then; nil when it had not
	permanent bool          // another attempt would fail too
	after     time.Duration // the handler's own wish for the pause before the next attempt; 0 for none
}

// text is the error of a run that ended so. Who canceled it is in it, whatever the handler says.
func (r *result) text() string {
	switch {
	case r.err == nil:
		return ""
	case !errors.Is(r.cause, ErrCanceled) && !errors.Is(r.cause, ErrReplaced), strings.Contains(r.err.Error(), r.cause.Error()):
		return r.err.Error()
	default:
		return r.cause.Error() + ": " + r.err.Error()
	}
}

// ended is told to the term's loop when an attempt is over.
type ended struct {
	job         string
	view        state.View // the job's status after the record; zero when nothing was recorded
	interrupted bool       // the run has not ended: it is to be recovered
}

// execute runs a run that this instance owns, attempt by attempt, from its claim to its record.
func (as *attempts) execute(a attempt, x *execution) ended {
	defer x.cancel(nil)
	// A claim may have been confirmed late, after an outage: then the lease answers again, or is gone.
	a.grant.Await(as.handlers, a.job.lockMargin())
	held, release := a.grant.Hold(context.Background(), a.job.lockMargin())
	defer release()
	defer context.AfterFunc(held, func() { x.cancel(ErrLockLost) })()
	if held.Err() != nil {
		x.cancel(ErrLockLost) // before the handler is called
	}
	defer as.watchOverrun(&a)()
	as.awaitStart(x, a.owned.Run.StartedAt)

	if !a.owned.Run.RetryAt.IsZero() { // taken over between two attempts
		as.leaveSlot(x)
		if e, over := as.tryAgain(&a, x); over {
			return e
		}
	}
	for {
		log := as.logOf(&a)
		end, res := as.try(log, &a, x)
		as.letOthersBegin(x)
		var done bool
		if end.Status, end.Reason, done = verdictOf(res); !done {
			return as.interrupted(log, a, res.cause)
		}
		pause, again := a.job.retry(&end, &res, rand.Float64())
		if !again || end.Status != state.Failed {
			return as.record(log, a, end)
		}
		if err := as.recordRetry(log, &a, end, pause); err != nil {
			return as.interrupted(log, a, err)
		}
		if e, over := as.tryAgain(&a, x); over {
			return e
		}
	}
}

func (as *attempts) logOf(a *attempt) *zap.Logger {
	r := &a.owned.Run
	return as.s.log.With(zap.String("job", r.Job), zap.String("run", r.ID), zap.Int("attempt", r.Attempt), zap.Int64("term", r.Term))
}

// try makes one attempt, in the slot that was taken for it, and gives the slot back when the handler has
// returned. The record that it returns has yet to be given its status.
func (as *attempts) try(log *zap.Logger, a *attempt, x *execution) (state.Run, result) {
	record := a.owned.Run
	record.FencingToken = a.owned.Revision
	ctx, traced := a.trace.attempt(x.ctx, &record)
	run := &Run{record: record, notes: newNotes(as.s.store, a.owned, log), trace: traced}
	begun := time.Now()
	end := record
	end.StartedAt = as.s.cfg.Now().UTC().Truncate(time.Millisecond)
	var res result
	if cause := context.Cause(x.ctx); cause != nil {
		res = result{err: cause, cause: cause}
	} else {
		as.s.observer.Observe(Started{Run: record, Delay: a.job.lateness(&record, end.StartedAt)})
		log.Info("run started")
		res = as.call(ctx, log, a.job, run)
	}
	took := time.Since(begun)
	traced.end(&res)
	as.leaveSlot(x)

	end.FinishedAt = end.StartedAt.Add(took).Truncate(time.Millisecond)
	end.DurationMS = took.Milliseconds()
	end.Output, end.ExitCode = run.result()
	end.Error = res.text()
	if p, noted := run.notes.close(); noted {
		end.Progress, a.owned.Noted = p, true
	}
	if end.Attempt == 1 {
		end.LatenessMS = a.job.lateness(&end, end.StartedAt).Milliseconds() // the claim may have taken long
	}
	return end, res
}

// tryAgain waits for the time of the next attempt and begins it. If the run is over instead, or is left to
// whoever leads, it says so.
func (as *attempts) tryAgain(a *attempt, x *execution) (e ended, over bool) {
	log := as.logOf(a)
	if err := as.awaitRetry(x, &a.owned.Run); err != nil {
		status, reason, done := verdictOf(result{err: err, cause: err})
		if !done || errors.Is(err, ErrDraining) { // another instance goes on with it, at the same time
			return as.interrupted(log, *a, err), true
		}
		end := a.owned.Run
		end.Status, end.Reason, end.Error, end.RetryAt, end.RetryInMS = status, reason, err.Error(), time.Time{}, 0
		end.FinishedAt = as.s.cfg.Now().UTC().Truncate(time.Millisecond)
		return as.record(log, *a, end), true
	}
	next := nextTry(a.owned.Run, a.job, as.s.cfg.Now().UTC().Truncate(time.Millisecond))
	recorded := a.trace.commit("next attempt")
	err := as.persist(log, "next attempt", func() error {
		owned, view, err := as.s.store.Again(as.recording, a.owned, next, a.view)
		if err == nil {
			a.owned, a.view = owned, view
		}
		return err
	})
	recorded(err)
	if err != nil {
		as.leaveSlot(x)
		return as.interrupted(log, *a, err), true
	}
	return ended{}, false
}

// awaitRetry waits until the time of the next attempt, and then for a slot. Its error is why there is to be no next
// attempt here: the cause of the run's context, or ErrDraining.
func (as *attempts) awaitRetry(x *execution, run *state.Run) error {
	// The time may be by another machine's clock; the pause is not.
	pause := min(run.RetryAt.Sub(as.s.cfg.Now()), time.Duration(run.RetryInMS)*time.Millisecond)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.ctx.Done():
	case <-as.stopped:
	}
	if err := as.mayBegin(x); err != nil {
		return err
	}
	place := as.queueUp()
	select {
	case <-place.granted:
	case <-x.ctx.Done():
	case <-as.stopped:
	}
	if err := as.mayBegin(x); err != nil {
		as.withdraw(place)
		return err
	}
	as.enterSlot(x)
	return nil
}

// mayBegin is why no attempt may begin here any more; nil if one may.
func (as *attempts) mayBegin(x *execution) error {
	if isClosed(as.stopped) {
		return ErrDraining
	}
	return context.Cause(x.ctx)
}

// recordRetry writes that an attempt has failed and when the next one begins.
func (as *attempts) recordRetry(log *zap.Logger, a *attempt, end state.Run, pause time.Duration) error {
	next := failedAttempt(end, as.s.cfg.Now(), pause)
	recorded := a.trace.commit("retry")
	err := as.persist(log, "failed attempt", func() error {
		owned, view, err := as.s.store.Retry(as.recording, a.owned, next, a.view)
		if err == nil {
			a.owned, a.view = owned, view
		}
		return err
	})
	recorded(err)
	if err == nil {
		log.Warn("attempt failed, trying again", zap.Duration("in", pause), zap.String("error", state.CutHead(end.Error, maxLogged)))
		as.s.observer.Observe(Retried{Run: next})
	}
	return err
}

// call calls the handler with its time limit, and watches that it returns in time when its context ends.
func (as *attempts) call(ctx context.Context, log *zap.Logger, j *job, run *Run) result {
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
	defer cancel()
	returned := callUser(func() error { return j.Handler(ctx, run) })
	select {
	case res := <-returned:
		res.cause = context.Cause(ctx)
		return res
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	log.Warn("run told to stop", zap.NamedError("cause", cause))
	late := time.NewTimer(j.Grace)
	defer late.Stop()
	for {
		select {
		case res := <-returned:
			res.cause = cause
			return res
		case <-late.C:
			log.Error("handler has not returned in time after its context ended; it keeps the job's lock while it can",
				zap.Duration("grace", j.Grace), zap.NamedError("cause", cause))
			as.s.observer.Observe(Overrunning{Run: run.record, Cause: cause})
			late.Reset(j.Timeout)
		}
	}
}

// callUser calls f, which is the user's code, where it can do no harm. Whoever calls it waits for the result, however
// long that takes.
func callUser(f func() error) <-chan result {
	returned := make(chan result, 1)
	go func() {
		res := result{err: errUnreturned}
		defer func() {
			if v := recover(); v != nil {
				res = result{err: &panicError{text: fmt.Sprintf("panic: %v\n\n%s", v, debug.Stack())}}
			}
			returned <- res
		}()
		res = resultOf(f())
	}()
	return returned
}

// resultOf reads a handler's error where it can do no harm: it is the user's code. What is kept is its text.
func resultOf(err error) (res result) {
	if err == nil {
		return res
	}
	_, res.permanent = errors.AsType[*permanentError](err)
	if later, ok := errors.AsType[*retryAfterError](err); ok {
		res.after = later.pause
	}
	res.err = errors.New(err.Error())
	return res
}

// verdictOf says how a run ended whose handler returned so. done is false when it has not ended: its
// lock was lost in the middle of the work, and whoever leads decides how it goes on. A handler that
// returns nil has done its work, whatever happened to its context.
func verdictOf(res result) (status state.RunStatus, reason string, done bool) {
	var p *panicError
	switch {
	case res.err == nil:
		return state.Succeeded, "", true
	case errors.Is(res.cause, ErrLockLost):
		return "", "", false
	case errors.As(res.err, &p):
		return state.Failed, state.ReasonPanic, true
	case errors.Is(res.cause, ErrTimeout):
		return state.Failed, state.ReasonTimeout, true
	case errors.Is(res.cause, ErrCanceled):
		return state.Canceled, state.ReasonRequested, true
	case errors.Is(res.cause, ErrReplaced):
		return state.Canceled, state.ReasonReplaced, true
	case errors.Is(res.cause, errPaused):
		return state.Canceled, state.ReasonPaused, true
	case errors.Is(res.cause, ErrDraining):
		return state.Canceled, state.ReasonDrain, true
	default:
		return state.Failed, "", true
	}
}

// record writes the end of a run.
func (as *attempts) record(log *zap.Logger, a attempt, end state.Run) ended {
	var view state.View
	a.owned.Noted = a.owned.Noted || a.owned.Scope == state.PerJob // of an earlier run
	_, a.owned.Canceled = as.toBeCanceled(end.Job, end.ID)         // one that comes later is the leader's to take away
	recorded := a.trace.commit("finish")
	err := as.persist(log, "end of run", func() (err error) {
		view, err = as.s.store.Finish(as.recording, a.owned, end, a.view)
		return err
	})
	recorded(err)
	if err != nil {
		return as.interrupted(log, a, err)
	}
	a.trace.end(&end)
	logEnd(log, &end)
	as.s.noteIncidents(&end, &a.view.Status, &view.Status)
	as.s.observer.Observe(Recorded{Run: end, Status: view.Status, Revision: view.Revision})
	return ended{job: end.Job, view: view}
}

// persist writes something of a run of ours until it is written, or refused because the run is not ours any
// more, or the instance gives up at the end of its shutdown.
func (as *attempts) persist(log *zap.Logger, what string, write func() error) error {
	const pause, maxPause = 100 * time.Millisecond, 5 * time.Second
	for wait := pause; ; wait = min(2*wait, maxPause) {
		err := write()
		if err == nil || errors.Is(err, state.ErrNotOwner) || errors.Is(err, state.ErrLocked) {
			return err
		}
		if as.recording.Err() != nil {
			return fmt.Errorf("%s could not be recorded before this instance ended: %w", what, err)
		}
		as.s.retrying("record", err)
		log.Warn(what+" not recorded, trying again", zap.Error(err))
		select {
		case <-as.recording.Done():
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// logEnd says how a run ended, louder when it failed.
func logEnd(log *zap.Logger, end *state.Run) {
	fields := []zap.Field{zap.String("status", string(end.Status)), zap.Int64("duration_ms", end.DurationMS)}
	if end.Status == state.Succeeded {
		log.Info("run finished", fields...)
		return
	}
	if end.Reason != "" {
		fields = append(fields, zap.String("reason", end.Reason))
	}
	if end.ExitCode != nil {
		fields = append(fields, zap.Int("exit_code", *end.ExitCode))
	}
	log.Warn("run finished", append(fields, zap.String("error", state.CutHead(end.Error, maxLogged)))...)
}

// interrupted leaves a run to whoever leads: it unlocks the job and records nothing.
func (as *attempts) interrupted(log *zap.Logger, a attempt, cause error) ended {
	log.Warn("run interrupted", zap.NamedError("cause", cause))
	if err := as.s.store.Unlock(as.recording, a.owned); err != nil {
		log.Warn("job not unlocked; its lock ends with this instance", zap.Error(err))
	}
	a.trace.interrupted(cause)
	as.s.observer.Observe(Interrupted{Run: a.owned.Run, Cause: cause})
	return ended{job: a.owned.Run.Job, interrupted: true}
}
