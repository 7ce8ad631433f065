package leader

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Term is one instance's time as leader.
type Term struct {
	state.Term // what every write of the leader compares
	ElectedAt  time.Time
	heart      *heart
}

// Beat says that the leader's loop goes round and its writes are answered. It must be called at least
// once in a TTL. Safe for concurrent use.
func (t Term) Beat() {
	if t.heart != nil {
		t.heart.last.Store(int64(time.Since(t.heart.born)))
	}
}

// heart is when the leader's loop last made progress, on the monotonic clock.
type heart struct {
	born time.Time
	last atomic.Int64
}

func newHeart() *heart { return &heart{born: time.Now()} }

// watch calls stalled once when the heart has not beaten for limit.
func (h *heart) watch(ctx context.Context, limit time.Duration, stalled func()) {
	tick := time.NewTicker(limit / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if time.Since(h.born)-time.Duration(h.last.Load()) > limit {
				stalled()
				return
			}
		}
	}
}
