package executor

import (
	"strconv"
	"syscall"
)

// status is a wait status that a process ended with.
type status struct{ syscall.WaitStatus }

// signal is the one that killed the process, 0 if it exited.
func (s status) signal() syscall.Signal {
	if s.Signaled() {
		return s.Signal()
	}
	return 0
}

// code is the exit code as shells count it. Codes above 128 are ambiguous there: the signal is not.
func (s status) code() int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

func (s status) String() string {
	if s.Signaled() {
		return "signal " + signalName(s.Signal())
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}
