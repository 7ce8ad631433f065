package executor

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// Executor makes handlers, and has what those of one process share: the directory of their sockets, and the
// connections of their webhooks. Safe for concurrent use.
type Executor struct {
	log        *zap.Logger
	sockets    *sockets
	transports *transports
}

// New returns an Executor that logs to log (nil for none). It opens nothing until a handler is called. The
// caller must Close it.
func New(log *zap.Logger) *Executor {
	if log == nil {
		log = zap.NewNop()
	}
	return &Executor{log: log, sockets: &sockets{log: log}, transports: newTransports()}
}

// Close gives back what the handlers have used. None of them may be called after it.
func (e *Executor) Close() {
	e.sockets.close()
	e.transports.close()
}

// Command returns a handler that runs c for each attempt, with its output going to the log at info level with
// the fields job, run and stream. It returns nil if the command exited with 0 by itself, an [ExitError] if it
// failed, an error that wraps the cause of its context if it was stopped, and one of this package's other
// errors if it could not be started. What another attempt would meet again is [cronrunner.Permanent]. The
// package's documentation has the details. Safe for concurrent use.
func (e *Executor) Command(c Command) cronrunner.Handler {
	return func(ctx context.Context, run *cronrunner.Run) error { return c.do(ctx, run, e.log, e.sockets) }
}

// attempt is what a handler needs of a [cronrunner.Run].
type attempt interface {
	named
	Trigger() state.Trigger
	ScheduledAt() time.Time
	FencingToken() int64
	Args() map[string]string
	notebook
	SetOutput(output string)
	SetExitCode(code int)
}

// named is what says which attempt one is.
type named interface {
	Job() string
	ID() string
	Attempt() int
	Term() int64
}

// logOf has the fields that every line about a run has.
func logOf(log *zap.Logger, run named) *zap.Logger {
	return log.Named(run.Job()).With(
		zap.String("job", run.Job()), zap.String("run", run.ID()), zap.Int("attempt", run.Attempt()), zap.Int64("term", run.Term()))
}

// The pauses between two tries to read a checkpoint.
const (
	restorePause    = 100 * time.Millisecond
	maxRestorePause = 5 * time.Second
)

// restored is the run's last checkpoint; nil if there is none. It waits for an etcd that is away: work that
// began anew for want of its checkpoint would be done twice.
func restored(ctx context.Context, run notebook, log *zap.Logger) (json.RawMessage, error) {
	for pause := restorePause; ; pause = min(2*pause, maxRestorePause) {
		var value json.RawMessage
		_, err := run.Restore(ctx, &value)
		switch {
		case err == nil:
			return value, nil
		case ctx.Err() != nil:
			return nil, notStarted(ctx)
		case isBroken(err):
			return nil, cronrunner.Permanent(err)
		}
		log.Warn("the checkpoint cannot be read, trying again", zap.Error(err))
		select {
		case <-ctx.Done():
			return nil, notStarted(ctx)
		case <-time.After(pause):
		}
	}
}
