package state

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Mutation is one self-contained conditional write: its compares, what it does when they hold, and what
// it reads when they do not. It refutes itself: once applied, its compares cannot hold again. It needs
// no other mutation to be in the same transaction or out of it, so a committer may pack several of
// different jobs into one.
type Mutation struct {
	Job  string // at most one mutation of a job may be in one transaction
	If   []clientv3.Cmp
	Then []clientv3.Op
	Else []clientv3.Op
}

// Result is the answer to a Mutation.
type Result struct {
	Succeeded bool
	Revision  int64 // of the store when it was applied; that of what it wrote, when it succeeded
	Responses []*etcdserverpb.ResponseOp
}

// Committer sends mutations. A nil error means a definite answer; any error leaves open whether the
// mutation was or will be applied, unless it is one with which etcd refuses a request.
type Committer interface {
	Commit(ctx context.Context, m Mutation) (Result, error)
}

// CommitHook is told of every transaction sent: how long it took, how many mutations it carried, and
// how it ended. It must not block.
type CommitHook func(took time.Duration, mutations int, err error)
