package executor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// do runs the command for one attempt, and returns when nothing of it is left, its socket included.
func (c Command) do(ctx context.Context, run attempt, log *zap.Logger, sockets *sockets) error {
	log = logOf(log, run)
	info := infoOf(run)
	if bad := info.badArgs(); len(bad) > 0 {
		log.Warn("the command does not get all arguments: a name may have only letters, digits and '_'", zap.Strings("left_out", bad))
	}
	p, err := c.prepare(os.Environ(), info)
	if err != nil {
		return asPermanent(err)
	}
	checkpoint, err := restored(ctx, run, log)
	if err != nil {
		return err
	}
	p.env = append(p.env, checkpointVariable(checkpoint, log)...)
	p.env = append(p.env, traceVariables(ctx, p.env)...)
	if notes := sockets.open(ctx, run, p.identity, log); notes != nil {
		defer notes.close()
		p.env = append(p.env, SocketVariable+"="+notes.path)
	}

	res := p.run(ctx, log)
	if res.exit != nil {
		run.SetExitCode(res.exit.code())
	}
	run.SetOutput(res.output)
	if e, ok := errors.AsType[*ExitError](res.err); ok && slices.Contains(c.PermanentExitCodes, e.Code) {
		return cronrunner.Permanent(res.err)
	}
	return asPermanent(res.err)
}

// asPermanent marks what another attempt, which would be made here, would meet again.
func asPermanent(err error) error {
	if errors.Is(err, ErrBadCommand) || errors.Is(err, ErrBadUser) {
		return cronrunner.Permanent(err)
	}
	return err
}

// checkpointVariable hands a command its last checkpoint; nothing if there is none.
func checkpointVariable(checkpoint []byte, log *zap.Logger) []string {
	if checkpoint == nil {
		return nil
	}
	text, err := textOf(checkpoint)
	switch {
	case err != nil:
		log.Warn("the checkpoint is not in the command's environment: it cannot be read", zap.Error(err))
	case strings.ContainsRune(text, 0):
		log.Warn("the checkpoint is not in the command's environment: it has a NUL byte, which no variable can have")
	default:
		return []string{CheckpointVariable + "=" + text}
	}
	return nil
}
