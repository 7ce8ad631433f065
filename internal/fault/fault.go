// Package fault is what a person or a program is told when something cannot be done: what is wrong, of which
// kind, and what to try. The command line makes an exit code of the kind, HTTP a status.
package fault

import "errors"

// Kind is what is wrong, as a program tells it apart. Kinds are a contract: they are the codes of the HTTP API.
type Kind string

// The kinds.
const (
	BadInput       Kind = "bad_input"       // what was asked makes no sense, or not of this job
	NotFound       Kind = "not_found"       // no such job, run or request
	Paused         Kind = "paused"          // the job starts nothing until it is resumed
	Retired        Kind = "retired"         // the leader does not have the job any more
	Invalid        Kind = "invalid"         // the job cannot be run as it stands in etcd
	RunOver        Kind = "run_over"        // the run is over already
	RunNotOver     Kind = "run_not_over"    // the run is not over yet
	NotLeading     Kind = "not_leading"     // nobody leads, or not who was meant
	NoConnection   Kind = "no_connection"   // etcd does not answer
	UnknownOutcome Kind = "unknown_outcome" // etcd has not answered in time: it may have been done, or may yet be
	Interrupted    Kind = "interrupted"     // whoever asked has gone; the outcome is not known
	Unavailable    Kind = "unavailable"     // not now: this instance starts, stops, or has too much to do
)

// Error is a fault. Err says what is wrong, Hint what to try; "" when there is nothing.
type Error struct {
	Kind Kind
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Of is the fault in err's tree; nil when there is none.
func Of(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
