package cronrunner

import (
	"errors"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Causes with which a handler's context ends.
var (
	// ErrTimeout is the attempt's time limit, Job.Timeout.
	ErrTimeout = errors.New("the attempt's time limit was reached")
	// ErrLockLost is a lock that is not surely held any more: etcd could not be reached for too long, or
	// the lock's lease was revoked. Another instance may go on with the run soon.
	ErrLockLost = errors.New("the job's lock was lost")
	// ErrCanceled is a request to cancel the run. The cause's text says whose, and why.
	ErrCanceled = errors.New("canceled")
	// ErrReplaced is a newer run of the job that waits to take this one's place (overlap policy Replace).
	ErrReplaced = errors.New("replaced by a newer run")
	// ErrDraining is the shutdown of the instance, after the drain limit.
	ErrDraining = errors.New("the instance is shutting down")
)

// Run is what a handler knows of the run that it does. Safe for concurrent use.
type Run struct {
	record state.Run // as claimed
	notes  *notes
	trace  *attemptTrace

	mu       sync.Mutex
	output   string
	exitCode *int
}

// Job is the job's name.
func (r *Run) Job() string { return r.record.Job }

// ID is the run's id, unique in its job and the same for all its attempts.
func (r *Run) ID() string { return r.record.ID }

// Trigger is what caused the run.
func (r *Run) Trigger() state.Trigger { return r.record.Trigger }

// ScheduledAt is the scheduled time, UTC. It says which period to work on, whenever the attempt runs. Of a
// run that was triggered by hand it is when it was asked for.
func (r *Run) ScheduledAt() time.Time { return r.record.ScheduledAt }

// Attempt counts from 1.
func (r *Run) Attempt() int { return r.record.Attempt }

// Term is the leader's term in which the run was claimed.
func (r *Run) Term() int64 { return r.record.Term }

// Args are the arguments that the run was asked for with; nil if there are none. They must not be changed.
func (r *Run) Args() map[string]string { return r.record.Args }

// FencingToken is greater with each claim of the job, and never smaller than that of any earlier claim in
// the cluster. (Claims of different jobs that were made in one transaction share theirs.) A target that
// remembers the greatest token it has seen and refuses smaller ones is safe from an instance that was
// frozen and wakes up.
func (r *Run) FencingToken() int64 { return r.record.FencingToken }

// SetOutput sets the output that is kept in the record; its last 16 KiB are.
func (r *Run) SetOutput(output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output = output
}

// SetExitCode sets the exit code that is kept in the record.
func (r *Run) SetExitCode(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exitCode = &code
}

func (r *Run) result() (output string, exitCode *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output, r.exitCode
}
