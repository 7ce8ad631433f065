package executor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	settleTime = 500 * time.Millisecond // for output after the main process exited by itself, and again for the log
	cutTime    = 100 * time.Millisecond // for output after the group was killed; for the log after a stop
	pollFloor  = 5 * time.Millisecond   // between looks whether a group is gone; doubles up to pollCeil
	pollCeil   = 100 * time.Millisecond
)

// program is a command that was found and is ready to start.
type program struct {
	file  string // absolute, or relative to dir
	argv  []string
	env   []string
	dir   string
	shell bool
	grace time.Duration

	identity *identity // nil for the scheduler's user
}

// prepare checks the command and finds its program.
func (c Command) prepare(inherited []string, run runInfo) (program, error) {
	if err := c.Check(); err != nil {
		return program{}, err
	}
	if err := checkDir(c.Dir); err != nil {
		return program{}, err
	}
	p := program{argv: c.Argv, dir: c.Dir, grace: c.grace()}
	if c.User != "" {
		id, err := lookupUser(c.User)
		if err != nil {
			return program{}, err
		}
		p.identity = id
	}
	p.env = c.environ(inherited, p.identity, run)
	if c.Shell != "" {
		p.file, p.argv, p.shell = shellPath, []string{shellPath, "-c", c.Shell}, true
		return p, nil
	}
	file, err := lookup(c.Argv[0], c.Dir, variable(p.env, "PATH"))
	if err != nil {
		return program{}, err
	}
	p.file = file
	return p, nil
}

// result is how a program ended.
type result struct {
	err    error   // nil if it exited with 0 by itself
	exit   *status // nil if it never started, or nobody knows
	output string
}

// run starts the program and returns when nothing of it is left; see the package's documentation for
// its steps and their times.
func (p program) run(ctx context.Context, log *zap.Logger) result {
	if ctx.Err() != nil {
		return result{err: notStarted(ctx)}
	}
	out, err := openOutput(log)
	if err != nil {
		return result{err: fmt.Errorf("cannot start %s: %w", p.file, err)}
	}
	attr := processAttr()
	attr.Credential = p.identity.credential()
	child, err := startChild(&exec.Cmd{
		Path: p.file, Args: p.argv, Env: p.env, Dir: p.dir,
		Stdout: out.stdout.w, Stderr: out.stderr.w,
		SysProcAttr: attr,
	})
	out.read()
	if err != nil {
		out.close(0, 0)
		return result{err: p.startError(err)}
	}

	stopped := p.supervise(ctx, child, out, log)
	exit, err := child.reap()
	logTime := settleTime
	if stopped {
		logTime = cutTime // the lock does not wait
	}
	text := out.close(cutTime, logTime)
	switch {
	case err != nil && stopped:
		return result{err: fmt.Errorf("stopped: %w (%w: %w)", context.Cause(ctx), ErrStatusLost, err), output: text}
	case err != nil:
		return result{err: fmt.Errorf("%w: %w", ErrStatusLost, err), output: text}
	case stopped:
		return result{err: fmt.Errorf("stopped: %w (ended with %s)", context.Cause(ctx), exit), exit: &exit, output: text}
	default:
		return result{err: p.exitError(exit), exit: &exit, output: text}
	}
}

// supervise returns when the main process has exited and its group was killed, and reports whether it
// was stopped because ctx had ended. One that ended by itself first was not, even if ctx ended at that
// moment: its own result is the truth.
func (p program) supervise(ctx context.Context, child *child, out *output, log *zap.Logger) (stopped bool) {
	select {
	case <-child.exited:
	case <-ctx.Done():
		stopped = !child.hasExited()
	}
	if stopped {
		p.stop(child, log)
	} else {
		select {
		case <-out.ended:
		case <-ctx.Done():
		case <-time.After(settleTime):
		}
	}
	child.signal(syscall.SIGKILL) //nolint:errcheck // nobody left is as good
	<-child.exited
	return stopped
}

// stop asks the group to end, and returns when it has, or the grace period is over. The main process may
// be gone long before what it started, so the whole group is waited for: a shell dies of SIGTERM at once
// while the program that it runs still tidies up.
func (p program) stop(child *child, log *zap.Logger) {
	if err := child.signal(syscall.SIGTERM); err != nil {
		log.Warn("the command cannot be signalled", zap.Int("pid", child.pid), zap.Error(err))
	}
	child.signal(syscall.SIGCONT) //nolint:errcheck // the answer is that of SIGTERM
	end := time.NewTimer(p.grace)
	defer end.Stop()
	select {
	case <-child.exited:
	case <-end.C:
		return
	}
	for pause := pollFloor; child.group.alive(); pause = min(2*pause, pollCeil) {
		select {
		case <-time.After(pause):
		case <-end.C:
			return
		}
	}
}

func (p program) startError(err error) error {
	if gone := checkDir(p.dir); gone != nil { // since prepare
		return gone
	}
	file := inDir(p.dir, p.file)
	switch gone := checkProgram(file); {
	case gone != nil && p.shell:
		return fmt.Errorf("%w: %w; use command, a program and its arguments", ErrNoShell, gone)
	case gone != nil:
		return gone
	case p.identity.credential() != nil && errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: the kernel does not let this scheduler run a command as %s; it needs the capabilities CAP_SETUID and CAP_SETGID",
			ErrBadUser, p.identity.text)
	case p.identity.credential() != nil && errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: as %s: %s may not be executed, or the directory %s not be entered: %w",
			ErrNotExecutable, p.identity.text, file, orHere(p.dir), err)
	default:
		return diagnose(file, err)
	}
}

// orHere is the directory that a command is started in, for people.
func orHere(dir string) string {
	if dir == "" {
		return "that the scheduler is in"
	}
	return dir
}

func (p program) exitError(exit status) error {
	if exit.code() == 0 {
		return nil
	}
	e := &ExitError{Code: exit.code(), Signal: exit.signal(), CoreDumped: exit.CoreDump()}
	if e.Signal == syscall.SIGKILL {
		e.Hint = "not by the scheduler; out of memory?"
	} else {
		e.Hint = hint(e.Code, p.shell, inDir(p.dir, p.file))
	}
	return e
}
