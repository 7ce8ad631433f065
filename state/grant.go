package state

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Grant is one lease of etcd, from when it was granted until it is gone. Safe for concurrent use.
type Grant struct {
	ID    clientv3.LeaseID
	lease *Lease
	gone  chan struct{}

	// Guarded by lease.mu.
	sent  time.Time     // before the last successful request was sent; has both clocks
	ttl   time.Duration // as promised in its answer
	holds map[*hold]struct{}
}

type hold struct {
	margin time.Duration
	cancel context.CancelCauseFunc
}

func (g *Grant) String() string { return leaseName(g.ID) }

// Hold returns a context that ends, with cause ErrLeaseLost, margin before the earliest instant at which
// the server could let the lease go; or when ctx does, or with ErrClosed. The user has margin to stop
// what it does under the lease. The watchdog looks ten times a second, so a margin should have 100 ms
// to spare. release must be called.
func (g *Grant) Hold(ctx context.Context, margin time.Duration) (held context.Context, release context.CancelFunc) {
	held, cancel := context.WithCancelCause(ctx)
	h := &hold{margin: margin, cancel: cancel}
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	if !g.heldLocked(time.Now(), margin) {
		cancel(ErrLeaseLost)
		return held, func() {}
	}
	g.holds[h] = struct{}{}
	return held, func() {
		g.lease.mu.Lock()
		delete(g.holds, h)
		g.lease.mu.Unlock()
		cancel(context.Canceled)
	}
}

// Await waits until the lease is surely held for at least margin, as it is again when a renewal succeeds
// after an outage. It reports false when the lease is gone or ctx has ended.
func (g *Grant) Await(ctx context.Context, margin time.Duration) bool {
	for {
		g.lease.mu.Lock()
		held, changed := g.heldLocked(time.Now(), margin), g.lease.changed
		g.lease.mu.Unlock()
		if held {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-g.gone:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Gone is closed once the lease is known to be gone for good: the server said so, or it was dropped.
func (g *Grant) Gone() <-chan struct{} { return g.gone }

// Held reports whether the lease is surely held for at least margin from now.
func (g *Grant) Held(margin time.Duration) bool {
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	return g.heldLocked(time.Now(), margin)
}

// Drop gives the lease up: it is not renewed any more, and revoked if etcd can be reached.
func (g *Grant) Drop() { g.lease.end(g, ErrLeaseLost) }

func (g *Grant) heldLocked(now time.Time, margin time.Duration) bool {
	select {
	case <-g.gone:
		return false
	default:
		return elapsed(g.sent, now) < g.ttl-margin
	}
}

func (g *Grant) expireLocked(now time.Time) {
	spent := elapsed(g.sent, now)
	for h := range g.holds {
		if spent >= g.ttl-h.margin {
			h.cancel(ErrLeaseLost)
			delete(g.holds, h)
		}
	}
}

func (g *Grant) untilRenewal() time.Duration {
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	return max(g.ttl/3-elapsed(g.sent, time.Now()), 0)
}

// elapsed is what has passed since from by the clock that says more. The monotonic clock stands still
// while a machine sleeps; the wall clock can be set back.
func elapsed(from, now time.Time) time.Duration {
	return max(now.Sub(from), now.Round(0).Sub(from.Round(0)))
}
