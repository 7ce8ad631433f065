package executor

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child pid has ended, without reaping it. It is false if the child was
// reaped by something else, so that its id means nothing any more.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// hasExited reports whether the child pid has ended, without reaping it. One that is no child any more
// has, too.
func hasExited(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err != nil || info.Signo == int32(unix.SIGCHLD)
}

// group is a process group whose leader is a child that is not reaped yet.
type group struct {
	id    int
	known []int // members of the last look at all processes
}

// alive reports whether a process of the group still lives; zombies do not. A look at all processes is
// dear where there are many, so it is taken only when those known from the last one are gone.
func (g *group) alive() bool {
	for len(g.known) > 0 {
		if g.has(g.known[len(g.known)-1]) {
			return true
		}
		g.known = g.known[:len(g.known)-1]
	}
	pids, err := allPids()
	if err != nil {
		return true // as far as one can tell
	}
	g.known = slices.DeleteFunc(pids, func(pid int) bool { return !g.has(pid) })
	return len(g.known) > 0
}

func (g *group) has(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.group == g.id && !s.dead()
}
