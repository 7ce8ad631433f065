package state

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors of this package. A transaction that was refused says by which of its compares.
var (
	// ErrBadName is a job name that cannot be part of a key.
	ErrBadName = errors.New("bad job name")
	// ErrNotFound is a job or a run that is not there.
	ErrNotFound = errors.New("not found")
	// ErrBadRecord is a stored value that cannot be decoded.
	ErrBadRecord = errors.New("stored value cannot be decoded")

	// ErrNotLeading refuses a leader's write: its term is over.
	ErrNotLeading = errors.New("this instance does not lead any more")
	// ErrRunExists refuses a claim: the scheduled time has its record already.
	ErrRunExists = errors.New("the run exists already")
	// ErrLocked refuses a claim or a recovery: somebody holds the job's lock.
	ErrLocked = errors.New("the job is locked by a running run")
	// ErrSpecChanged refuses a claim decided on an older definition.
	ErrSpecChanged = errors.New("the job's definition has changed")
	// ErrControlChanged refuses a claim decided before the job was paused or resumed.
	ErrControlChanged = errors.New("the job was paused or resumed")
	// ErrStatusReplaced refuses a leader's decision on a status that is gone, broken, another job's, or not what it
	// was decided on.
	ErrStatusReplaced = errors.New("the job's status was replaced")
	// ErrNotOwner refuses a word about a run that somebody else has taken over or ended.
	ErrNotOwner = errors.New("the run is not this instance's any more")
	// ErrRequestGone refuses an act on a request: it was acted on already, or withdrawn.
	ErrRequestGone = errors.New("the request was acted on already, or withdrawn")
	// ErrPaused refuses a request: the job is paused.
	ErrPaused = errors.New("the job is paused")
	// ErrRetired refuses a request: the job is no longer among the leader's jobs.
	ErrRetired = errors.New("the job is retired: the leader does not have it any more")
	// ErrRunOver refuses to cancel a run that is over.
	ErrRunOver = errors.New("the run is over already")
	// ErrRunNotOver refuses to retry a run that is not over.
	ErrRunNotOver = errors.New("the run is not over yet")
	// ErrContended is a status key that others changed faster than it could be written.
	ErrContended = errors.New("the job's status changes too fast")

	// ErrLeaseLost ends the contexts of a lease's users when it is not surely held any more.
	ErrLeaseLost = errors.New("the lease is not surely held any more")
	// ErrClosed is the use of a lease after its keeper was closed.
	ErrClosed = errors.New("closed")
)

// Unreachable reports whether err is an etcd that went away, or has no quorum, or has not answered in time.
func Unreachable(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	code := status.Code(err)
	if etcdErr, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = etcdErr.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// definite reports whether err proves that the transaction was not and will not be applied. Everything
// else is unknown: the request may have reached the leader's log and may be applied later still.
func definite(err error) bool {
	if etcdErr, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return settled(etcdErr.Code())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return settled(status.Code(err))
}

// settled are the codes with which etcd refuses a request before or while applying it. Unavailable is
// not one of them: "leader changed" and "request timed out" come as Unavailable after the proposal.
func settled(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.PermissionDenied,
		codes.ResourceExhausted, codes.OutOfRange, codes.Unauthenticated, codes.Unimplemented:
		return true
	default:
		return false
	}
}
