package state

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Lessor is what a [Lease] needs of etcd. Each call is one try: the keeper does the retrying, so that
// it knows when each request was sent. [NewLessor] makes one from a client.
type Lessor interface {
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
}

const (
	// checkEvery is how often the watchdog looks at both clocks. A timer would not do: it counts
	// monotonic time, which stands still while a machine sleeps.
	checkEvery = 100 * time.Millisecond
	// revokeTimeout bounds the courtesy of revoking a lease; it would end by itself.
	revokeTimeout = 2 * time.Second
	// maxHedge is how many renewals of a lease are on their way at once.
	maxHedge = 3
	// retryFloor is the first pause after a failed grant or renewal; it doubles up to a tenth of the TTL.
	retryFloor = 50 * time.Millisecond
)

// Lease keeps one etcd lease of one TTL for as long as it is open, and shares it among its users. When
// the server has let the lease go, the next [Lease.Acquire] is granted a new one. Safe for concurrent
// use.
type Lease struct {
	lessor Lessor
	ttl    time.Duration
	log    *zap.Logger

	stop context.CancelFunc
	done sync.WaitGroup

	nudged chan struct{} // renew now

	mu      sync.Mutex
	closed  bool
	wanted  bool
	current *Grant        // nil before the first Acquire and after a loss
	changed chan struct{} // closed and replaced when any of the above, or trust, changes
}

// OpenLease returns a lease of the given TTL, rounded up to whole seconds as etcd counts them. Nothing
// is asked of etcd before the first Acquire. Close must be called. log may be nil.
func OpenLease(lessor Lessor, ttl time.Duration, log *zap.Logger) *Lease {
	if log == nil {
		log = zap.NewNop()
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Lease{
		lessor:  lessor,
		ttl:     (ttl + time.Second - 1).Truncate(time.Second),
		log:     log,
		stop:    stop,
		nudged:  make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	l.done.Go(func() { l.keep(ctx) })
	l.done.Go(func() { l.watchdog(ctx) })
	return l
}

// TTL is the lease's time to live as asked for; the server may grant more.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Close ends the contexts of all users, revokes the lease (within 2 s, or leaves it to expire) and
// waits for the keeper.
func (l *Lease) Close() {
	l.mu.Lock()
	l.closed = true
	l.broadcast()
	l.mu.Unlock()
	l.stop()
	l.done.Wait()
}

// Acquire returns a grant that is surely held for at least margin, waiting until there is one. Its
// error is ctx's cause, or ErrClosed.
func (l *Lease) Acquire(ctx context.Context, margin time.Duration) (*Grant, error) {
	for {
		l.mu.Lock()
		g, changed, closed := l.current, l.changed, l.closed
		if !l.wanted {
			l.wanted = true
			l.broadcast()
			changed = l.changed
		}
		held := g != nil && g.heldLocked(time.Now(), margin)
		l.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		if held {
			return g, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Nudge renews at once instead of when it is due: somebody has reason to think that the lease is gone.
func (l *Lease) Nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// broadcast wakes whoever waits for a change. l.mu is held.
func (l *Lease) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// keep is the keeper: it waits until a lease is wanted, has one granted, renews it until it is gone,
// and starts over.
func (l *Lease) keep(ctx context.Context) {
	for l.waitWanted(ctx) {
		if g := l.grant(ctx); g != nil {
			l.renew(ctx, g)
		}
	}
}

func (l *Lease) waitWanted(ctx context.Context) bool {
	for {
		l.mu.Lock()
		wanted, changed := l.wanted, l.changed
		l.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		if wanted {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// grant asks for a lease until one is granted, for ever, with capped backoff; nil when ctx has ended.
func (l *Lease) grant(ctx context.Context) *Grant {
	for wait := l.backoff(); ctx.Err() == nil; wait.sleep(ctx, nil) {
		sent := time.Now()
		callCtx, cancel := context.WithTimeout(ctx, l.ttl)
		resp, err := l.lessor.Grant(callCtx, int64(l.ttl/time.Second))
		cancel()
		if err != nil {
			wait.warn(l.log, "lease not granted, trying again", err)
			continue
		}
		g := &Grant{
			ID: resp.ID, lease: l, gone: make(chan struct{}), holds: make(map[*hold]struct{}),
			sent: sent, ttl: time.Duration(resp.TTL) * time.Second,
		}
		l.mu.Lock()
		l.current = g
		l.broadcast()
		l.mu.Unlock()
		l.log.Debug("lease granted", zap.String("lease", g.String()), zap.Duration("ttl", g.ttl))
		return g
	}
	return nil
}

// renew renews g at a third of its TTL until it is gone. A renewal that fails is tried again at once
// with short pauses, also when trust has run out meanwhile: the server may still have the lease, and an
// outage gives every lease its full TTL again.
func (l *Lease) renew(ctx context.Context, g *Grant) {
	wait := l.backoff()
	for {
		select {
		case <-ctx.Done():
			l.end(g, ErrClosed)
			l.revoke(ctx, g)
			return
		case <-g.gone: // dropped by a user
			l.revoke(ctx, g)
			return
		case <-l.nudged:
		case <-time.After(g.untilRenewal()):
		}
		for {
			err := l.renewHedged(ctx, g)
			if err == nil {
				if !wait.logged.IsZero() {
					l.log.Info("lease renewed again", zap.Duration("ttl", l.ttl))
				}
				wait = l.backoff()
				break
			}
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				l.log.Warn("the server has let the lease go", zap.String("lease", g.String()))
				l.end(g, ErrLeaseLost)
				return
			}
			if ctx.Err() == nil {
				wait.warn(l.log.With(zap.Duration("ttl", l.ttl)), "lease not renewed, trying again", err)
			}
			if !wait.sleep(ctx, g.gone) {
				break
			}
		}
	}
}

// renewHedged renews once. A request that is not answered within a sixth of the TTL is not given up, but
// another one is sent beside it: a slow etcd is waited for, and one member that is silent does not cost
// the lease. It returns when one is answered, when the lease is known to be gone, or when none was.
func (l *Lease) renewHedged(ctx context.Context, g *Grant) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl/2, time.Second))
	defer cancel()
	answers := make(chan error, maxHedge)
	for sent, pending := 0, 0; ; {
		if sent < maxHedge {
			sent++
			pending++
			l.done.Go(func() { answers <- l.renewOnce(ctx, g) })
		}
		select {
		case err := <-answers:
			pending--
			if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) || pending == 0 {
				return err
			}
		case <-time.After(l.ttl / 6):
		}
	}
}

// renewOnce sends one renewal. The lease is surely held for its TTL from the instant before that: the
// server counts from some later one, whenever its answer comes.
func (l *Lease) renewOnce(ctx context.Context, g *Grant) error {
	sent := time.Now()
	resp, err := l.lessor.KeepAliveOnce(ctx, g.ID)
	if err != nil {
		return err
	}
	if resp.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent.After(g.sent) { // answers can overtake each other; the newest request's promise counts
		g.sent, g.ttl = sent, time.Duration(resp.TTL)*time.Second
		l.broadcast()
	}
	return nil
}

// end declares g gone and ends the contexts of its users.
func (l *Lease) end(g *Grant, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-g.gone:
		return
	default:
	}
	close(g.gone)
	for h := range g.holds {
		h.cancel(cause)
	}
	clear(g.holds)
	if l.current == g {
		l.current, l.wanted = nil, false
	}
	l.broadcast()
}

func (l *Lease) revoke(ctx context.Context, g *Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	if _, err := l.lessor.Revoke(ctx, g.ID); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		l.log.Info("lease not revoked; it expires by itself", zap.String("lease", g.String()), zap.Error(err))
	}
}

// watchdog ends the contexts of those users whose margin is reached. It never makes a call that could
// block.
func (l *Lease) watchdog(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.mu.Lock()
			if l.current != nil {
				l.current.expireLocked(time.Now())
			}
			l.mu.Unlock()
		}
	}
}

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

// backoff of the keeper: capped, with jitter.
func (l *Lease) backoff() *backoff {
	return &backoff{next: retryFloor, limit: max(l.ttl/10, retryFloor)}
}

// backoff pauses a loop that retries: doubling from next to limit, with full jitter, logging at most
// once in ten seconds.
type backoff struct {
	next, limit time.Duration
	logged      time.Time
}

// sleep pauses; false when ctx ended or stop was closed meanwhile.
func (b *backoff) sleep(ctx context.Context, stop <-chan struct{}) bool {
	pause := b.next/2 + rand.N(b.next/2+1)
	b.next = min(2*b.next, b.limit)
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// lasted begins anew if what was tried went well for a while.
func (b *backoff) lasted(d time.Duration) {
	if d > 2*b.limit {
		b.next = retryFloor
	}
}

func (b *backoff) warn(log *zap.Logger, msg string, err error) {
	if now := time.Now(); now.Sub(b.logged) >= 10*time.Second {
		b.logged = now
		log.Warn(msg, zap.Error(err))
	}
}
