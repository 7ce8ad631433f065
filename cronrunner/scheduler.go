package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Defaults of a Config.
const (
	DefaultDrainTimeout  = 25 * time.Second
	DefaultMaxConcurrent = 256
)

// Config configures a Scheduler. The zero value is a good one.
type Config struct {
	// Prefix and Namespace are where everything is kept: /<prefix>/<namespace>/. Schedulers with the
	// same two share the jobs. Default /etcdcron/default/.
	Prefix    string
	Namespace string
	// InstanceID names this instance and must be unique to this process start; default host, process id
	// and a random suffix. A given id gets a random suffix too, so that two processes that were given
	// the same do not take each other's runs for their own.
	InstanceID string
	// Version and Address (of the HTTP API) are shown to people.
	Version string
	Address string
	// Source says where the jobs come from, for people. Default "code".
	Source string
	// LeaderTTL is how long a crashed leader is waited for, in whole seconds. Default 5 s, at least 2 s.
	LeaderTTL time.Duration
	// DrainTimeout is how long running attempts may go on after Run's ctx has ended, before they are
	// canceled. Default 25 s; negative is none at all.
	DrainTimeout time.Duration
	// MaxConcurrent is how many attempts run at once on this instance; further due jobs wait their turn
	// in order. Default 256.
	MaxConcurrent int
	// Logger. Default none.
	Logger *zap.Logger
	// Observer. Default none.
	Observer Observer
	// CommitHook is told of every transaction sent. Default none.
	CommitHook state.CommitHook
	// TracerProvider makes a trace of each run; see docs/tracing.md. Default none, which costs nothing.
	TracerProvider trace.TracerProvider
	// Now is the wall clock. Default time.Now. It is for tests.
	Now func() time.Time
}

// Scheduler is one instance: it campaigns, schedules while it leads, and runs what it claimed. Safe for
// concurrent use. It writes no global state, installs no signal handlers and never ends the process.
type Scheduler struct {
	client   *clientv3.Client
	cfg      Config
	self     state.Instance
	log      *zap.Logger
	observer Observer
	tracing  *tracing
	store    *state.Store
	elector  *leader.Elector
	attempts *attempts
	answer   atomic.Int64 // when etcd last answered a write, as time since born
	pace     pace
	born     time.Time

	mu      sync.Mutex
	jobs    map[string]*job
	changed chan struct{} // closed and replaced when jobs changes
	running bool
}

// New checks cfg and returns a scheduler on client, which stays the caller's. It asks nothing of etcd.
func New(client *clientv3.Client, cfg Config) (*Scheduler, error) {
	keys, err := state.NewKeys(cfg.Prefix, cfg.Namespace)
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("the etcd client is nil; make one with clientv3.New")
	}
	if cfg.MaxConcurrent < 0 {
		return nil, fmt.Errorf("max concurrent %d is negative", cfg.MaxConcurrent)
	}
	cfg.MaxConcurrent = orDefault(cfg.MaxConcurrent, DefaultMaxConcurrent)
	cfg.DrainTimeout = orDefault(cfg.DrainTimeout, DefaultDrainTimeout)
	cfg.Source = orDefault(cfg.Source, "code")
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id := orDefault(cfg.InstanceID, fmt.Sprintf("%s-%d", host, os.Getpid()))
	if state.CheckJobName(id) != nil { // ids are part of keys, as names are
		return nil, fmt.Errorf("instance id %q may have only letters, digits, '.', '_' and '-', and begin with a letter or digit", id)
	}
	self := state.Instance{
		ID: id + "-" + state.RandomSuffix(), Host: host, PID: os.Getpid(),
		Version: cfg.Version, Address: cfg.Address, StartedAt: cfg.Now().UTC().Truncate(time.Second),
	}
	log := cfg.Logger
	s := &Scheduler{
		client:   client,
		cfg:      cfg,
		self:     self,
		log:      log,
		observer: guarded{cfg.Observer, log},
		tracing:  newTracing(cfg.TracerProvider, cfg.Version),
		born:     time.Now(),
		jobs:     make(map[string]*job),
		changed:  make(chan struct{}),
	}
	s.elector, err = leader.New(client, leader.Config{Keys: keys, Self: self, TTL: cfg.LeaderTTL, RetryHook: s.retrying, Logger: log})
	if err != nil {
		return nil, err
	}
	s.store = state.NewStore(client, keys, state.StoreConfig{Hook: s.committed, RetryHook: s.retrying, Logger: log})
	return s, nil
}

// committed is told of every transaction.
func (s *Scheduler) committed(took time.Duration, mutations int, err error) {
	if err == nil {
		s.answer.Store(int64(time.Since(s.born)))
		s.pace.measured(took, mutations)
	}
	if s.cfg.CommitHook != nil {
		s.cfg.CommitHook(took, mutations, err)
	}
}

// retrying is told of every call to etcd that is tried again.
func (s *Scheduler) retrying(operation string, err error) {
	s.observer.Observe(Retrying{Operation: operation, Err: err})
}

// answeredAt is when etcd last answered a write.
func (s *Scheduler) answeredAt() time.Time { return s.born.Add(time.Duration(s.answer.Load())) }

// ErrDuplicate is a second job of one name.
var ErrDuplicate = errors.New("there is already a job of that name")

// Register adds a job, before Run or while it runs. Its errors are ErrBadJob, naming every fault, and
// ErrDuplicate.
func (s *Scheduler) Register(j Job) error {
	compiled, err := j.compile()
	if err != nil {
		return err
	}
	if j.Handler == nil {
		return fmt.Errorf("%w %q: handler: is required", ErrBadJob, j.Name)
	}
	if j.Alert.Target != "" && j.Alert.Notify == nil {
		return fmt.Errorf("%w %q: alert: a target needs Notify", ErrBadJob, j.Name)
	}
	if failover := s.elector.TTL() + time.Second; compiled.CatchUp.Window < failover {
		s.log.Warn("catch-up window is shorter than a failover may take: what falls due then is missed",
			zap.String("job", j.Name), zap.Duration("window", compiled.CatchUp.Window), zap.Duration("failover", failover))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.Name] != nil {
		return fmt.Errorf("job %q: %w", j.Name, ErrDuplicate)
	}
	s.jobs[j.Name] = compiled
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// ErrRunning is a second call of Run.
var ErrRunning = errors.New("the scheduler runs already, or has run: make a new one")

// Run campaigns, schedules while it leads, and executes, until ctx ends. Then it claims nothing more,
// hands leadership over at once, lets running attempts go on until the drain limit, cancels those that
// are left, and returns when the last handler has. It returns nil after a shutdown that ended so; a
// handler that ignores its context keeps its lock and keeps Run waiting, since nobody else may run its
// job. May be called once.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return ErrRunning
	}
	s.running = true
	leases := state.NewLeases(s.store, state.NewLessor(s.client))
	s.attempts = newAttempts(s, leases)
	s.mu.Unlock()
	defer s.store.Wait()
	defer leases.Close()
	defer context.AfterFunc(ctx, s.attempts.stopping)()

	var presence sync.WaitGroup
	presenceCtx, stopPresence := context.WithCancel(context.WithoutCancel(ctx))
	presence.Go(func() { s.announce(presenceCtx) })
	presence.Go(func() { s.follow(ctx) })
	presence.Go(func() { s.attempts.followCancels(presenceCtx) })
	defer presence.Wait()
	defer stopPresence()

	_ = s.elector.Run(ctx, s.lead)
	s.attempts.drain(s.cfg.DrainTimeout)
	return nil
}

// Abort has a Run that drains wait no longer: the contexts of all handlers end, with cause ErrDraining.
// Before Run's own context has ended it does nothing.
func (s *Scheduler) Abort() {
	s.mu.Lock()
	as := s.attempts
	s.mu.Unlock()
	if as != nil {
		as.abort()
	}
}

// ID is this instance's id: what was configured, with a random suffix.
func (s *Scheduler) ID() string { return s.self.ID }

// Store reads what is recorded. It may be used while Run runs, before and after.
func (s *Scheduler) Store() *state.Store { return s.store }

// Elector tells who leads, and can hand leadership over.
func (s *Scheduler) Elector() *leader.Elector { return s.elector }

// snapshot is the registered jobs, and a channel that is closed when there are others.
func (s *Scheduler) snapshot() (jobs map[string]*job, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.jobs), s.changed
}

// registered is the jobs of those names, as they are now. (A snapshot of all, for each few of very many, would cost
// their square.)
func (s *Scheduler) registered(names []string) map[string]*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := make(map[string]*job, len(names))
	for _, name := range names {
		jobs[name] = s.jobs[name]
	}
	return jobs
}

// announce keeps the instance's key under a lease of its own: it says that the process lives, also when
// the lease of a lock is gone.
func (s *Scheduler) announce(ctx context.Context) {
	const retry, look = time.Second, 30 * time.Second
	lease := state.OpenLease(state.NewLessor(s.client), s.elector.TTL(), state.LeaseConfig{RetryHook: s.retrying, Logger: s.log})
	defer lease.Close()
	for {
		g, err := lease.Acquire(ctx, 0)
		if err != nil {
			return
		}
		again := look // somebody may have deleted the key
		if there, err := s.store.Present(ctx, s.self.ID); err != nil || !there {
			if err = s.store.Announce(ctx, s.self, g.ID); err != nil {
				s.retrying("presence", err)
				s.log.Debug("instance not announced, trying again", zap.Error(err))
				again = retry
			}
		}
		select {
		case <-time.After(again):
		case <-g.Gone():
		case <-ctx.Done():
			return
		}
	}
}
