package cronrunner

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// Observer is told what happens. It is called from the goroutines that do the work: it must be safe for
// concurrent use and must not block.
type Observer interface {
	Observe(ev Event)
}

// Event is one of the event types below.
type Event interface{ event() }

type (
	// Elected is the start of a term of this instance.
	Elected struct{ Term int64 }
	// Deposed is the end of a term of this instance.
	Deposed struct {
		Term  int64
		Cause error
	}
	// Started is an attempt whose handler is being called.
	Started struct {
		Run   state.Run
		Delay time.Duration // since it was due, or asked for
	}
	// Recorded is a run whose end, or whose not being run, is in etcd, and the job's status after it.
	Recorded struct {
		Run      state.Run
		Status   state.JobStatus
		Revision int64 // of the status: a greater one is newer, though it may be told before
	}
	// Interrupted is an attempt that ended without an end to record: its lock was lost, or the run was
	// taken over. Whoever leads recovers the run.
	Interrupted struct {
		Run   state.Run
		Cause error
	}
	// Retried is a run one of whose attempts has failed; the next one begins at Run.RetryAt.
	Retried struct{ Run state.Run }
	// Recovered is a run of a lost instance that this one goes on with.
	Recovered struct{ Run state.Run }
	// Overrunning is a handler that has not returned in time after its context ended.
	Overrunning struct {
		Run   state.Run
		Cause error // why its context ended
	}
	// Retrying is a call to etcd that failed and is tried again. Operation says for what, one of [RetryOperations].
	Retrying struct {
		Operation string
		Err       error
	}
	// Retired is a job that is not among the leader's jobs and of which nothing runs or waits any more; told by the
	// leader, when it is elected and when the last run has ended.
	Retired struct{ Job string }
	// Alerted is an incident of a job that has begun, told by who wrote that down.
	Alerted struct {
		Job      string
		Incident state.Incident
	}
	// Notified is a call of a job's Alert.Notify. With an error it is made again, unless it was given up.
	Notified struct {
		Job     string
		Kind    state.AlertKind
		Err     error
		GivenUp bool
	}
	// Planned is a job's status, with its next scheduled time, told by the leader when the job is loaded
	// and after each of its decisions.
	Planned struct {
		Job      string
		Status   state.JobStatus
		Revision int64 // as in Recorded
	}
)

// RetryOperations are what a [Retrying] can be of: transactions, reads, watches, leases, the election; what was to be
// written of a run that goes on or ends here ("record"); what is to be done for a job, by the leader ("job"); and
// the key that says that the instance lives ("presence").
func RetryOperations() []string {
	return []string{"commit", "read", "watch", "lease", "election", "record", "job", "presence"}
}

func (Elected) event()     {}
func (Deposed) event()     {}
func (Started) event()     {}
func (Recorded) event()    {}
func (Interrupted) event() {}
func (Retried) event()     {}
func (Recovered) event()   {}
func (Overrunning) event() {}
func (Retrying) event()    {}
func (Retired) event()     {}
func (Alerted) event()     {}
func (Notified) event()    {}
func (Planned) event()     {}

// guarded is an observer whose panics are its own.
type guarded struct {
	Observer
	log *zap.Logger
}

func (g guarded) Observe(ev Event) {
	defer func() {
		if v := recover(); v != nil {
			g.log.Error("the observer panicked", zap.String("event", fmt.Sprintf("%T", ev)), zap.Any("panic", v))
		}
	}()
	g.Observer.Observe(ev)
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Observe(Event) {}
