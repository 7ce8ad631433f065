package cronrunner

import (
	"context"
	"errors"
	"fmt"
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
	err   error
	cause error // why its context had ended by then; nil when it had not
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

// execute runs one attempt from its claim to its record. It calls returned when the handler has returned,
// or will not be called.
func (as *attempts) execute(a attempt, x *execution, returned func()) ended {
	record := a.owned.Run
	record.FencingToken = a.owned.Revision
	log := as.s.log.With(zap.String("job", record.Job), zap.String("run", record.ID), zap.Int("attempt", record.Attempt))

	ctx := x.ctx
	defer x.cancel(nil)
	// A claim may have been confirmed late, after an outage: then the lease answers again, or is gone.
	a.grant.Await(as.handlers, a.job.lockMargin())
	held, release := a.grant.Hold(context.Background(), a.job.lockMargin())
	defer release()
	defer context.AfterFunc(held, func() { x.cancel(ErrLockLost) })()

	run := &Run{record: record}
	begun := time.Now()
	end := record
	end.StartedAt = as.s.cfg.Now().UTC().Truncate(time.Millisecond)
	var res result
	switch {
	case held.Err() != nil:
		res = result{err: ErrLockLost, cause: ErrLockLost}
	case ctx.Err() != nil:
		res = result{err: context.Cause(ctx), cause: context.Cause(ctx)}
	default:
		as.s.observer.Observe(Started{Run: record, Delay: a.job.lateness(&record, end.StartedAt)})
		log.Info("run started")
		res = as.call(ctx, log, a.job, run)
	}
	returned()

	took := time.Since(begun)
	end.FinishedAt = end.StartedAt.Add(took).Truncate(time.Millisecond)
	end.DurationMS = took.Milliseconds()
	end.Output, end.ExitCode = run.result()
	if end.Attempt == 1 {
		end.LatenessMS = a.job.lateness(&end, end.StartedAt).Milliseconds() // the claim may have taken long
	}
	var done bool
	if end.Status, end.Reason, done = verdictOf(res); !done {
		return as.interrupted(log, a, res.cause)
	}
	end.Error = res.text()
	return as.record(log, a, end)
}

// call calls the handler with its time limit, and watches that it returns in time when its context ends.
func (as *attempts) call(ctx context.Context, log *zap.Logger, j *job, run *Run) result {
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
	defer cancel()
	returned := make(chan error, 1)
	go func() { // waited for below, however long it takes
		err := errUnreturned
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{text: fmt.Sprintf("panic: %v\n\n%s", v, debug.Stack())}
			}
			returned <- err
		}()
		if err = j.Handler(ctx, run); err != nil {
			err = errors.New(err.Error()) // its text, made where it can do no harm: it is the user's code
		}
	}()
	select {
	case err := <-returned:
		return result{err: err, cause: context.Cause(ctx)}
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	log.Warn("run told to stop", zap.NamedError("cause", cause))
	late := time.NewTimer(j.Grace)
	defer late.Stop()
	for {
		select {
		case err := <-returned:
			return result{err: err, cause: cause}
		case <-late.C:
			log.Error("handler has not returned in time after its context ended; it keeps the job's lock while it can",
				zap.Duration("grace", j.Grace), zap.NamedError("cause", cause))
			as.s.observer.Observe(Overrunning{Run: run.record, Cause: cause})
			late.Reset(j.Timeout)
		}
	}
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
	case errors.Is(res.cause, ErrDraining):
		return state.Canceled, state.ReasonDrain, true
	default:
		return state.Failed, "", true
	}
}

// record writes the end of a run until it is written, or refused because the run is not ours any more,
// or the instance gives up at the end of its shutdown.
func (as *attempts) record(log *zap.Logger, a attempt, end state.Run) ended {
	const pause, maxPause = 100 * time.Millisecond, 5 * time.Second
	for wait := pause; ; wait = min(2*wait, maxPause) {
		view, err := as.s.store.Finish(as.recording, a.owned, end, a.view)
		if err == nil {
			logEnd(log, &end)
			as.s.observer.Observe(Recorded{Run: end, Status: view.Status})
			return ended{job: end.Job, view: view}
		}
		if errors.Is(err, state.ErrNotOwner) {
			return as.interrupted(log, a, err)
		}
		if as.recording.Err() != nil {
			return as.interrupted(log, a, fmt.Errorf("its end could not be recorded before this instance ended: %w", err))
		}
		log.Warn("end of run not recorded, trying again", zap.String("status", string(end.Status)), zap.Error(err))
		select {
		case <-as.recording.Done():
		case <-time.After(wait):
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
	as.s.observer.Observe(Interrupted{Run: a.owned.Run, Cause: cause})
	return ended{job: a.owned.Run.Job, interrupted: true}
}
