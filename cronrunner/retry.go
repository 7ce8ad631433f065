package cronrunner

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Retry is how a run goes on after an attempt that failed. The run keeps its lock meanwhile, so its job is
// busy. When its instance dies between two attempts, whoever takes the run over keeps to the same count and
// the same time.
type Retry struct {
	// MaxAttempts is how often the work is tried: 1 is no retry, and the default. Attempts that were cut off by
	// the loss of their instance do not count; see Recovery.
	MaxAttempts int
	// The pause before the n-th retry is random, from nothing to Initial * Multiplier^(n-1), at most Max ("full
	// jitter"). Defaults 10 s, 5 m, 2.
	Initial, Max time.Duration
	Multiplier   float64
}

// Defaults and bounds of a Retry.
const (
	DefaultRetryInitial    = 10 * time.Second
	DefaultRetryMax        = 5 * time.Minute
	DefaultRetryMultiplier = 2
	MaxRetryAttempts       = 1000
	MaxRetryPause          = 24 * time.Hour // also of RetryAfter; a longer one is cut to it
)

func (r Retry) withDefaults() Retry {
	r.MaxAttempts = orDefault(r.MaxAttempts, 1)
	if r.MaxAttempts == 1 {
		return r
	}
	r.Initial = orDefault(r.Initial, DefaultRetryInitial)
	r.Max = orDefault(r.Max, max(DefaultRetryMax, r.Initial))
	r.Multiplier = orDefault(r.Multiplier, DefaultRetryMultiplier)
	return r
}

func (r Retry) check(fault func(string, error)) {
	if r.MaxAttempts < 1 || r.MaxAttempts > MaxRetryAttempts {
		fault("retry.max_attempts", fmt.Errorf("%d is not between 1 (no retry) and %d", r.MaxAttempts, MaxRetryAttempts))
		return
	}
	if r.MaxAttempts == 1 {
		if r.Initial != 0 || r.Max != 0 || r.Multiplier != 0 {
			fault("retry.max_attempts", errors.New("with 1 attempt there is no retry; use 2 or more, or leave out the rest"))
		}
		return
	}
	switch {
	case r.Initial < time.Millisecond:
		fault("retry.initial", fmt.Errorf("%s is too short", r.Initial))
	case r.Max < r.Initial:
		fault("retry.max", fmt.Errorf("%s is less than the initial pause, %s", r.Max, r.Initial))
	case r.Max > MaxRetryPause:
		fault("retry.max", fmt.Errorf("%s is too long; the job is locked meanwhile; use at most %s", r.Max, MaxRetryPause))
	}
	if !(r.Multiplier >= 1 && r.Multiplier <= 100) {
		fault("retry.multiplier", fmt.Errorf("%g is not between 1 and 100", r.Multiplier))
	}
}

func (r Retry) spec() *state.RetrySpec {
	if r.MaxAttempts == 1 {
		return nil
	}
	return &state.RetrySpec{
		MaxAttempts: r.MaxAttempts, Initial: state.Duration(r.Initial), Max: state.Duration(r.Max), Multiplier: r.Multiplier,
	}
}

// pause is how long to wait before the n-th retry, counted from 1. chance is between 0 and 1.
func (r Retry) pause(n int, chance float64) time.Duration {
	limit := math.Min(float64(r.Initial)*math.Pow(r.Multiplier, float64(n-1)), float64(r.Max))
	return time.Duration(chance * limit)
}

// retry says whether the run goes on after an attempt that ended so, and after which pause.
func (j *job) retry(r *state.Run, res *result, chance float64) (pause time.Duration, again bool) {
	if res.permanent || r.Retries+1 >= j.Retry.MaxAttempts {
		return 0, false
	}
	if res.after > 0 {
		return min(res.after, MaxRetryPause), true
	}
	return j.Retry.pause(r.Retries+1, chance), true
}

// Permanent marks an error that another attempt would meet again: the run fails at once, whatever its Retry
// says. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// RetryAfter marks an error with the pause after which to try again, in place of what the job's Retry says. How
// often is still for the Retry to say. A pause of zero or less marks nothing, and one of more than 24 h is cut
// to that. It returns nil for nil.
func RetryAfter(err error, pause time.Duration) error {
	if err == nil || pause <= 0 {
		return err
	}
	return &retryAfterError{err, pause}
}

type retryAfterError struct {
	error

	pause time.Duration
}

func (e *retryAfterError) Unwrap() error { return e.error }

// failedAttempt is the record of a run one of whose attempts has failed and that is to be tried again after a
// pause.
func failedAttempt(end state.Run, now time.Time, pause time.Duration) state.Run {
	r := end
	r.Attempts = appendAttempt(end.Attempts, state.Attempt{
		Attempt: end.Attempt, Instance: end.Instance, FencingToken: end.FencingToken,
		StartedAt: end.StartedAt, EndedAt: end.FinishedAt, Reason: orDefault(end.Reason, state.ReasonFailed), Error: state.CutHead(end.Error, maxAttemptError),
	})
	r.Status, r.Reason, r.FinishedAt = state.Running, "", time.Time{}
	r.Retries++
	pause = pause.Truncate(time.Millisecond)
	r.RetryAt, r.RetryInMS = now.UTC().Add(pause).Truncate(time.Millisecond), pause.Milliseconds()
	return r
}

// appendAttempt keeps as many as a record does.
func appendAttempt(attempts []state.Attempt, a state.Attempt) []state.Attempt {
	older := attempts[max(len(attempts)-state.MaxAttempts+1, 0):]
	return append(append(make([]state.Attempt, 0, len(older)+1), older...), a)
}

// maxAttemptError bounds the error of an attempt that was followed by another; ten of them are in a record.
const maxAttemptError = 512

// nextTry is the record of the attempt after a failed one.
func nextTry(r state.Run, j *job, now time.Time) state.Run {
	r.Attempt++
	r.StartedAt, r.RetryAt, r.RetryInMS = now, time.Time{}, 0
	r.DurationMS, r.Error, r.Output, r.ExitCode, r.FencingToken = 0, "", "", nil, 0
	r.TimeoutMS = j.Timeout.Milliseconds()
	return r
}
