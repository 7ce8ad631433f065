package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults bounds how many faults are told of: nobody reads more, and every alias can repeat one.
const maxFaults = 1000

// FaultError is one thing wrong with a jobs file.
type FaultError struct {
	File  string
	Line  int    // 0 when it is the whole file's
	Field string // job.field, as in the file; "" when it is no field's
	Err   error
}

// Error is "file:line: field: problem".
func (f *FaultError) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Field != "" {
		b.WriteString(": " + f.Field)
	}
	return b.String() + ": " + f.Err.Error()
}

// Unwrap gives the problem itself.
func (f *FaultError) Unwrap() error { return f.Err }

// FaultErrors is everything wrong with a jobs file, by line. It is never empty.
type FaultErrors []*FaultError

// Error has a line for each fault.
func (f FaultErrors) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives every fault.
func (f FaultErrors) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}

func (f FaultErrors) sorted() FaultErrors {
	slices.SortStableFunc(f, func(a, b *FaultError) int { return cmp.Compare(a.Line, b.Line) })
	return f
}

// faultf notes a problem; field is "" when it is no field's.
func (p *parser) faultf(line int, field, format string, args ...any) {
	p.faultErr(line, field, fmt.Errorf(format, args...))
}

func (p *parser) faultErr(line int, field string, err error) {
	switch n := len(p.faults); {
	case n == maxFaults:
		field, err = "", errors.New("there are more faults; mend these first")
	case n > maxFaults:
		return
	}
	p.faults = append(p.faults, &FaultError{File: p.file, Line: line, Field: field, Err: err})
}
