package state

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Events is who follows a prefix. List is called with all that stands there, at the start and again
// whenever events may have been lost; Event with each change after that.
type Events struct {
	List  func(kvs []*mvccpb.KeyValue)
	Event func(ev *clientv3.Event)
}

// Follow lists prefix and watches it from there until ctx ends, and returns ctx's cause. When the watch
// is lost (compaction, a member cut off from its quorum, an expired token) it lists and watches again,
// with capped backoff. It calls its follower from one goroutine.
func (s *Store) Follow(ctx context.Context, prefix string, f Events, opts ...clientv3.OpOption) error {
	wait := s.backoff("watch", 2*time.Second)
	for {
		kvs, rev, err := s.list(ctx, prefix)
		if err == nil {
			f.List(kvs)
			began := time.Now()
			err = s.watch(ctx, prefix, rev+1, f.Event, opts)
			wait.lasted(time.Since(began))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait.failed(s.log.With(zap.String("prefix", prefix)), "watch lost, listing again", err)
		wait.sleep(ctx, nil)
	}
}

func (s *Store) watch(ctx context.Context, prefix string, rev int64, event func(*clientv3.Event), opts []clientv3.OpOption) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	opts = append(opts, clientv3.WithPrefix(), clientv3.WithRev(rev))
	for resp := range s.client.Watch(ctx, prefix, opts...) {
		if err := resp.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", prefix, err)
		}
		for _, ev := range resp.Events {
			event(ev)
		}
	}
	return fmt.Errorf("watch %s: closed", prefix)
}
