package executor

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// Handler runs the command for each attempt, with its output going to log (nil for none) at info level
// with the fields job, run and stream. It returns nil if the command exited with 0 by itself, an
// [ExitError] if it failed, an error that wraps the cause of its context if it was stopped, and one of
// this package's other errors if it could not be started. The package's documentation has the details.
// Safe for concurrent use.
func (c Command) Handler(log *zap.Logger) cronrunner.Handler {
	if log == nil {
		log = zap.NewNop()
	}
	return func(ctx context.Context, run *cronrunner.Run) error { return c.do(ctx, run, log) }
}

// attempt is what a command needs of a [cronrunner.Run].
type attempt interface {
	Job() string
	ID() string
	Trigger() state.Trigger
	ScheduledAt() time.Time
	Attempt() int
	FencingToken() int64
	Args() map[string]string
	SetOutput(output string)
	SetExitCode(code int)
}

func (c Command) do(ctx context.Context, run attempt, log *zap.Logger) error {
	log = log.Named(run.Job()).With(zap.String("job", run.Job()), zap.String("run", run.ID()))
	info := runInfo{
		job: run.Job(), id: run.ID(), trigger: string(run.Trigger()),
		scheduledAt: run.ScheduledAt(), attempt: run.Attempt(), fencingToken: run.FencingToken(), args: run.Args(),
	}
	if bad := info.badArgs(); len(bad) > 0 {
		log.Warn("the command does not get all arguments: a name may have only letters, digits and '_'", zap.Strings("left_out", bad))
	}
	p, err := c.prepare(os.Environ(), info)
	if err != nil {
		return err
	}
	res := p.run(ctx, log)
	if res.exit != nil {
		run.SetExitCode(res.exit.code())
	}
	run.SetOutput(res.output)
	return res.err
}
