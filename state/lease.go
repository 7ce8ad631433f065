package state

import (
	"context"
	"errors"
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
	hook   RetryHook
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

// LeaseConfig configures a Lease. The zero value is a good one.
type LeaseConfig struct {
	// RetryHook is told of grants and renewals that are tried again. Default none.
	RetryHook RetryHook
	// Logger gets warnings of them. Default none.
	Logger *zap.Logger
}

// OpenLease returns a lease of the given TTL, rounded up to whole seconds as etcd counts them. Nothing
// is asked of etcd before the first Acquire. Close must be called.
func OpenLease(lessor Lessor, ttl time.Duration, cfg LeaseConfig) *Lease {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Lease{
		lessor:  lessor,
		ttl:     (ttl + time.Second - 1).Truncate(time.Second),
		hook:    cfg.RetryHook,
		log:     cfg.Logger,
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
			wait.failed(l.log, "lease not granted, trying again", err)
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
				wait.failed(l.log.With(zap.Duration("ttl", l.ttl)), "lease not renewed, trying again", err)
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
	if mutateTrust {
		sent = time.Now()
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

// backoff of the keeper: capped, with jitter.
func (l *Lease) backoff() *backoff {
	return &backoff{operation: "lease", hook: l.hook, next: retryFloor, limit: max(l.ttl/10, retryFloor)}
}
