package executor

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Why a command could not be started or a webhook not called, or has failed.
var (
	// ErrBadCommand is a definition that cannot be accepted.
	ErrBadCommand = errors.New("bad command")
	// ErrNotFound is a program that is not there.
	ErrNotFound = errors.New("program not found")
	// ErrNotExecutable is a file that is there and may not or cannot be executed.
	ErrNotExecutable = errors.New("not executable")
	// ErrBadInterpreter is a program whose interpreter or dynamic loader is not there.
	ErrBadInterpreter = errors.New("interpreter not found")
	// ErrNoShell is a shell command on a system without a shell.
	ErrNoShell = errors.New("no shell")
	// ErrBadDir is a working directory that is not there or cannot be entered.
	ErrBadDir = errors.New("bad working directory")
	// ErrBadUser is a user as whom a command cannot be run here.
	ErrBadUser = errors.New("bad user")
	// ErrBadWebhook is the definition of a webhook that cannot be accepted.
	ErrBadWebhook = errors.New("bad webhook")
	// ErrStatusLost is a command that ended, nobody can say how: something else in this process took its
	// exit status.
	ErrStatusLost = errors.New("the exit status was lost")
)

// ExitError is a command that ended by itself and has failed.
type ExitError struct {
	Code       int            // as in the record: 128 + Signal for a killed one
	Signal     syscall.Signal // that killed it; 0 if it exited
	CoreDumped bool
	Hint       string // what to look at; may be empty
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != 0 {
		text = "killed by signal " + signalName(e.Signal)
	}
	if e.CoreDumped {
		text += ", core dumped"
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return strconv.Itoa(int(s))
}
