package executor

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// processAttr has no parent-death signal: macOS has none.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the child pid has ended, without reaping it. waitid is of no use here: it also
// returns for a stopped child (golang.org/issue/19314).
func awaitExit(pid int) bool {
	if err := awaitEvent(pid); err != nil {
		for !hasExited(pid) { // no descriptor to be had, or no such process
			time.Sleep(pollCeil)
		}
	}
	return true
}

func awaitEvent(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(queue) //nolint:errcheck // nothing was written
	event := make([]unix.Kevent_t, 1)
	unix.SetKevent(&event[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event[0].Fflags = unix.NOTE_EXIT
	if _, err := retry(func() (int, error) { return unix.Kevent(queue, event, nil, nil) }); err != nil {
		return err // ESRCH: it is a zombie already
	}
	_, err = retry(func() (int, error) { return unix.Kevent(queue, nil, event, nil) })
	return err
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// hasExited reports whether the child pid has ended, without reaping it.
func hasExited(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err != nil || info.Proc.P_stat == zombie
}

// group is a process group whose leader is a child that is not reaped yet.
type group struct{ id int }

// alive reports whether a process of the group still lives; zombies do not.
func (g *group) alive() bool {
	members, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", g.id)
	if err != nil {
		return true // as far as one can tell
	}
	for _, m := range members {
		if m.Proc.P_stat != zombie {
			return true
		}
	}
	return false
}
