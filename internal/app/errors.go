package app

import (
	"errors"
	"fmt"
)

// What a command's exit code is made of.
var (
	// ErrNoConnection is an etcd that could not be reached, or did not answer.
	ErrNoConnection = errors.New("no connection to etcd")
	// ErrBadInput is what waiting would not mend: a flag, a file, a password, a port in use.
	ErrBadInput = errors.New("bad input")
)

// problem is an error whose text stands for itself: one line that says what is wrong and what to try.
// Its kind is for errors.Is.
type problem struct {
	kind error
	err  error
}

func (p *problem) Error() string   { return p.err.Error() }
func (p *problem) Unwrap() []error { return []error{p.kind, p.err} }

func badInput(format string, args ...any) error {
	return &problem{kind: ErrBadInput, err: fmt.Errorf(format, args...)}
}
