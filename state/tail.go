package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Tailing is who follows what changes, and not what stands. Reset is called when changes may have been lost, with
// the revision from which on they are told; Changed with the changes of one revision after the other, and with none
// when there are none up to there.
type Tailing struct {
	Reset   func(rev int64)
	Changed func(rev int64, events []*clientv3.Event)
}

// Tail follows the changes under prefix after a revision until ctx ends, and returns ctx's cause. It goes on from
// where it was when the watch is lost. From a revision that is compacted, more than maxBehind ago, not there (etcd was
// restored from an older backup), or 0, it goes on from now, and says so by Reset. It calls its follower from one
// goroutine.
func (s *Store) Tail(ctx context.Context, prefix string, after, maxBehind int64, f Tailing) error {
	wait := s.backoff("watch", 2*time.Second)
	for {
		now, err := s.Revision(ctx)
		if err == nil {
			if after == 0 || after > now || now-after > maxBehind {
				after = now
				f.Reset(now)
			}
			began := time.Now()
			after, err = s.tail(ctx, prefix, after, f)
			wait.lasted(time.Since(began))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		wait.failed(s.log.With(zap.String("prefix", prefix)), "watch lost, watching again", err)
		wait.sleep(ctx, nil)
	}
}

// tail watches until the watch is lost, and returns how far it got; 0 when it cannot go on from there.
func (s *Store) tail(ctx context.Context, prefix string, after int64, f Tailing) (int64, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for resp := range s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(after+1), clientv3.WithProgressNotify()) {
		if err := resp.Err(); err != nil {
			if resp.CompactRevision != 0 {
				after = 0
			}
			return after, fmt.Errorf("watch %s: %w", prefix, err)
		}
		for events := resp.Events; len(events) > 0; {
			rev, n := events[0].Kv.ModRevision, 1
			for n < len(events) && events[n].Kv.ModRevision == rev {
				n++
			}
			f.Changed(rev, events[:n])
			events, after = events[n:], rev
		}
		if resp.IsProgressNotify() && resp.Header.Revision > after {
			after = resp.Header.Revision
			f.Changed(after, nil)
		}
	}
	return after, errors.New("watch " + prefix + ": closed")
}
