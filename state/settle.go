package state

import (
	"context"
	"time"
)

// settle sends m until it has a definite answer. After a try whose outcome is unknown only an answer to
// the compares settles it: a later refusal (no space, say) says nothing of the earlier try, which may
// still be on its way. So once in doubt it goes on, with capped backoff, until ctx ends; the error then
// is ctx's, and the outcome stays unknown.
//
// A lease that is not there any more is an answer after all: etcd looks for it only when the compares
// hold, so no earlier try was applied, and none can be with that lease from now on.
func (s *Store) settle(ctx context.Context, m Mutation) (Result, error) {
	wait := s.backoff("commit", time.Second)
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
		wait.failed(s.log, "etcd transaction has no answer yet, trying again", err)
		if !wait.sleep(ctx, nil) {
			return Result{}, context.Cause(ctx)
		}
	}
}
