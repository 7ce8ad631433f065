package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// Causes with which a term's context ends, and errors of this package.
var (
	// ErrLost ends a term: the lease is not surely held any more, or the key is gone.
	ErrLost = errors.New("leadership lost")
	// ErrResigned ends a term that was handed over on purpose, also at shutdown.
	ErrResigned = errors.New("leadership resigned")
	// ErrStalled ends a term whose heart stopped beating.
	ErrStalled = errors.New("leadership given up: the scheduler loop made no progress")
	// ErrNoLeader is the answer when nobody leads.
	ErrNoLeader = errors.New("nobody leads")
)

const (
	// DefaultTTL is how long a crashed leader is waited for.
	DefaultTTL = 5 * time.Second
	// MinTTL is etcd's own floor with its default election timeout: it grants no shorter lease.
	MinTTL = 2 * time.Second
	// MaxTTL keeps a slip of the unit from stopping every job for hours.
	MaxTTL = 10 * time.Minute

	callTimeout = 5 * time.Second
	retryFloor  = 100 * time.Millisecond // first pause after a failed campaign; doubles up to the TTL
)

// Config configures an Elector.
type Config struct {
	// Keys of the namespace. Required.
	Keys state.Keys
	// Self describes this instance; ID is required and must be unique to this process start.
	Self state.Instance
	// TTL of the leader's lease, in whole seconds. Default 5 s, at least 2 s. After a crash the next
	// leader is there at most TTL + 1 s later.
	TTL time.Duration
	// RetryHook is told of what is tried again, the election itself among it, as "election". Default none.
	RetryHook state.RetryHook
	// Logger. Default none.
	Logger *zap.Logger
}

// Elector takes part in the election of one namespace. Safe for concurrent use.
type Elector struct {
	client *clientv3.Client
	store  *state.Store
	lessor state.Lessor
	cfg    Config
	margin time.Duration // the term ends that long before the lease could
	log    *zap.Logger

	current atomic.Pointer[tenure] // nil while not leading
	blocked atomic.Pointer[string] // election key that no lease will ever remove
}

// New checks cfg and returns an elector. It asks nothing of etcd.
func New(client *clientv3.Client, cfg Config) (*Elector, error) {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	switch {
	case cfg.Keys == (state.Keys{}):
		return nil, errors.New("leader: Config.Keys is required; make it with state.NewKeys")
	case cfg.Self.ID == "":
		return nil, errors.New("leader: Config.Self.ID is required and must be unique to this process start")
	case cfg.TTL < MinTTL:
		return nil, fmt.Errorf("leader: TTL %s is too short: etcd grants no lease under %s; the default is %s", cfg.TTL, MinTTL, DefaultTTL)
	case cfg.TTL > MaxTTL:
		return nil, fmt.Errorf("leader: TTL %s is too long: for so long nobody leads after a crash; the longest is %s", cfg.TTL, MaxTTL)
	case cfg.TTL%time.Second != 0:
		return nil, fmt.Errorf("leader: TTL %s: etcd counts leases in whole seconds", cfg.TTL)
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.RetryHook == nil {
		cfg.RetryHook = func(string, error) {}
	}
	return &Elector{
		client: client,
		store:  state.NewStore(client, cfg.Keys, state.StoreConfig{RetryHook: cfg.RetryHook, Logger: cfg.Logger}),
		lessor: state.NewLessor(client),
		cfg:    cfg,
		margin: cfg.TTL / 5,
		log:    cfg.Logger,
	}, nil
}

// Run campaigns until ctx ends, and returns ctx's cause. While elected it calls lead; lead's ctx ends,
// with a cause, before another instance can be elected. When lead returns, it resigns and campaigns
// again. The key is given up as soon as the term ends, also while lead is still returning, but no new
// term begins before it has. Run must not be called twice at once.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	lease := state.OpenLease(e.lessor, e.cfg.TTL, state.LeaseConfig{RetryHook: e.cfg.RetryHook, Logger: e.log})
	defer lease.Close()
	for pause := retryFloor; ctx.Err() == nil; {
		s, err := e.campaign(ctx, lease)
		if err == nil {
			pause = retryFloor
			err = e.reign(ctx, s, lead)
		}
		if err != nil && ctx.Err() == nil {
			e.cfg.RetryHook("election", err)
			e.log.Warn("election failed, campaigning again", zap.Error(err))
			select {
			case <-ctx.Done():
			case <-time.After(pause/2 + rand.N(pause)):
			}
			pause = min(2*pause, e.cfg.TTL)
		}
	}
	return context.Cause(ctx)
}

// tenure is a term while it lasts.
type tenure struct {
	term Term
	end  context.CancelCauseFunc
	over chan struct{} // closed when the key was given up, or is not ours any more
}

// Resign ends this instance's term, if it leads, and returns when the key is given up or ctx ends. The
// instance stays a candidate, behind those that wait already.
func (e *Elector) Resign(ctx context.Context) error {
	t := e.current.Load()
	if t == nil {
		return nil
	}
	t.end(ErrResigned)
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leading is the term that this instance leads in, as far as it knows; ok is false when it does not.
// For display only: what may be written is decided by the write's compare.
func (e *Elector) Leading() (term Term, ok bool) {
	if t := e.current.Load(); t != nil {
		return t.term, true
	}
	return Term{}, false
}

// TTL is the leader lease's.
func (e *Elector) TTL() time.Duration { return e.cfg.TTL }

// Blocked is an election key without a lease that stands before all candidates, or "". No lease will
// ever remove it (it came from a restored backup or a tool): somebody must delete it.
func (e *Elector) Blocked() string {
	if p := e.blocked.Load(); p != nil {
		return *p
	}
	return ""
}
