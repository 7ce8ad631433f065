package executor

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// child is a started process that leads its own group. exited closes when it has ended and is not yet
// reaped: until reap is called its id, which is its group's too, cannot be given to anyone else, so the
// group can be signalled without hitting a stranger.
type child struct {
	pid    int
	group  group
	exited chan struct{}

	release chan struct{} // asks for the reaping
	reaped  chan struct{}
	ours    bool // false if something else reaped it; set before exited closes
	status  status
	err     error
}

// startChild starts cmd, whose SysProcAttr must be processAttr's. The caller must call reap.
//
// One goroutine forks, waits and reaps, and it keeps its thread all the while: the parent-death signal
// comes when the thread that forked ends, not the process, and Go ends threads as it likes.
func startChild(cmd *exec.Cmd) (*child, error) {
	c := &child{exited: make(chan struct{}), release: make(chan struct{}), reaped: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := children.start(cmd)
		if err == nil {
			c.pid, c.group = cmd.Process.Pid, group{id: cmd.Process.Pid}
		}
		started <- err
		if err != nil {
			return
		}
		c.ours = awaitExit(c.pid)
		close(c.exited)
		<-c.release
		err = cmd.Wait()
		children.forget(c.pid)
		if cmd.ProcessState != nil {
			c.status = status{cmd.ProcessState.Sys().(syscall.WaitStatus)} //nolint:forcetypeassert // it is that on every Unix
		} else {
			c.err = err
		}
		close(c.reaped)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// hasExited reports whether the process has ended, without the delay of exited.
func (c *child) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return hasExited(c.pid)
	}
}

// signal sends sig to the group. It must not be called after reap.
func (c *child) signal(sig syscall.Signal) error {
	select {
	case <-c.exited:
		if !c.ours {
			return nil // the id may be a stranger's by now
		}
	default:
	}
	err := c.group.signal(sig)
	if sig == syscall.SIGKILL {
		return errors.Join(err, syscall.Kill(c.pid, sig)) // it may have left its group
	}
	return err
}

// reap waits for the end of the process and takes its status.
func (c *child) reap() (status, error) {
	close(c.release)
	<-c.reaped
	return c.status, c.err
}
