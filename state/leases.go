package state

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Leases are the leases of a process: one per distinct TTL, opened when first asked for. (None is
// granted per run: revoking one makes etcd commit its backend, which costs four times the rest of a
// run.) Each has a sentinel key attached, watched, so that a revocation is noticed at once and not with
// the next renewal. Safe for concurrent use.
type Leases struct {
	store  *Store
	lessor Lessor
	done   sync.WaitGroup
	stop   context.CancelFunc
	watch  func(*Lease)

	mu    sync.Mutex
	byTTL map[time.Duration]*Lease
}

// NewLeases returns the leases of a process. Close must be called.
func NewLeases(store *Store, lessor Lessor) *Leases {
	ctx, stop := context.WithCancel(context.Background())
	ls := &Leases{store: store, lessor: lessor, stop: stop, byTTL: make(map[time.Duration]*Lease)}
	ls.watch = func(l *Lease) { store.sentinel(ctx, l) }
	return ls
}

// For is the process's lease of that TTL.
func (ls *Leases) For(ttl time.Duration) *Lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byTTL[ttl]
	if l == nil {
		l = OpenLease(ls.lessor, ttl, LeaseConfig{RetryHook: ls.store.retryHook, Logger: ls.store.log})
		ls.byTTL[ttl] = l
		ls.done.Go(func() { ls.watch(l) })
	}
	return l
}

// Close closes every lease, ending the contexts of its users, and waits. Locks that are still held go
// with their lease. For must not be called any more.
func (ls *Leases) Close() {
	ls.stop()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byTTL {
		ls.done.Go(l.Close)
	}
	ls.done.Wait()
}

// sentinel keeps a key attached to l's lease and has the lease renewed at once when that key vanishes.
// The renewal's answer is what tells a revoked lease from a key that was deleted by hand; in the latter
// case the key is put again.
func (s *Store) sentinel(ctx context.Context, l *Lease) {
	wait := s.backoff("lease", 2*time.Second)
	for ctx.Err() == nil {
		g, err := l.Acquire(ctx, 0)
		if err != nil {
			return
		}
		key := s.keys.Sentinel(g.ID)
		rev, err := s.putSentinel(ctx, key, g)
		if err != nil {
			l.Nudge()
			wait.failed(s.log, "lease sentinel not written, trying again", err)
			wait.sleep(ctx, g.Gone())
			continue
		}
		began := time.Now()
		s.watchSentinel(ctx, key, rev, g)
		wait.lasted(time.Since(began))
		l.Nudge()
		wait.sleep(ctx, g.Gone()) // until the renewal has told
	}
}

func (s *Store) putSentinel(ctx context.Context, key string, g *Grant) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	value := encode(struct {
		TTL Duration `json:"ttl"`
	}{Duration(g.lease.ttl)})
	resp, err := s.client.Put(ctx, key, string(value), clientv3.WithLease(g.ID))
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// watchSentinel returns when the key is deleted, the watch is lost, or the lease is gone.
func (s *Store) watchSentinel(ctx context.Context, key string, rev int64, g *Grant) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	events := s.client.Watch(ctx, key, clientv3.WithRev(rev+1))
	for {
		select {
		case <-g.Gone():
			return
		case resp, ok := <-events:
			if !ok || resp.Err() != nil {
				return
			}
			for _, ev := range resp.Events {
				if ev.Type == mvccpb.Event_DELETE {
					return
				}
			}
		}
	}
}
