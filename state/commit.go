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

// direct sends each mutation as a transaction of its own.
type direct struct {
	kv      clientv3.KV
	timeout time.Duration
	hook    CommitHook
}

func (d direct) Commit(ctx context.Context, m Mutation) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	start := time.Now()
	resp, err := d.kv.Txn(ctx).If(m.If...).Then(m.Then...).Else(m.Else...).Commit()
	d.hook(time.Since(start), 1, err)
	if err != nil {
		return Result{}, err
	}
	return Result{Succeeded: resp.Succeeded, Revision: resp.Header.Revision, Responses: resp.Responses}, nil
}

// settle sends m until it has a definite answer. After a try whose outcome is unknown only an answer to
// the compares settles it: a later refusal (no space, say) says nothing of the earlier try, which may
// still be on its way. So once in doubt it goes on, with capped backoff, until ctx ends; the error then
// is ctx's, and the outcome stays unknown.
//
// A lease that is not there any more is an answer after all: no try with that lease can be applied from
// now on, so what a linearizable read finds is final. The caller reads (see apply).
func (s *Store) settle(ctx context.Context, m Mutation) (Result, error) {
	wait := &backoff{next: retryFloor, limit: time.Second}
	unknown := false
	for {
		res, err := s.committer.Commit(ctx, m)
		if err == nil {
			return res, nil
		}
		if definite(err) && (!unknown || isLeaseNotFound(err)) {
			return Result{}, err
		}
		unknown = unknown || !definite(err)
		wait.warn(s.log, "etcd transaction has no answer yet, trying again", err)
		if !wait.sleep(ctx, nil) {
			return Result{}, context.Cause(ctx)
		}
	}
}
