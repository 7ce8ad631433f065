package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/internal/executor"
	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/state"
)

// Defaults of a ServeConfig.
const (
	DefaultDataDir    = memberName + ".etcd" // as etcd itself would name it
	DefaultEtcdListen = "127.0.0.1:2379"
	DefaultListen     = "127.0.0.1:2390"
)

// httpCloseLimit is how long a stopping instance waits for HTTP answers on their way.
const httpCloseLimit = 2 * time.Second

// ServeConfig configures Serve.
type ServeConfig struct {
	// Embed starts an etcd of our own; Client.Endpoints is not used then.
	Embed bool
	// Client is how to reach etcd.
	Client ClientConfig
	// DataDir is where the embedded etcd keeps its data. Default etcdcron.etcd in the working directory.
	DataDir string
	// EtcdListen is where the embedded etcd listens for clients, IP:port. Default 127.0.0.1:2379.
	EtcdListen string
	// Listen is where HTTP listens, IP:port. Default 127.0.0.1:2390.
	Listen string
	// Insecure allows EtcdListen and Listen to be open to other machines, though neither asks who calls.
	Insecure bool
	// HTTP is who may use HTTP, and how it shows itself.
	HTTP HTTPConfig
	// ConfigFile is the jobs file. Required.
	ConfigFile string
	// Prefix and Namespace are where everything is kept. Default /etcdcron and default.
	Prefix, Namespace string
	// InstanceID, LeaderTTL, DrainTimeout, MaxConcurrent and Version are those of [cronrunner.Config].
	InstanceID    string
	LeaderTTL     time.Duration
	DrainTimeout  time.Duration
	MaxConcurrent int
	Version       string
	// Logger. Default none.
	Logger *zap.Logger
	// JSONLog says that programs read the log: each line has the field instance, and none is a hint for
	// people.
	JSONLog bool
	// Hurry, once closed, has a drain wait no longer: running jobs are stopped. Nil never does.
	Hurry <-chan struct{}
}

// Serve runs an instance until ctx ends and what runs has been drained; then it returns nil. It logs why
// ctx ended: its cause. It waits for an etcd that is not there, and returns at once, with ErrBadInput, for
// what waiting would not mend. An error otherwise is that of a part without which it cannot go on.
func Serve(ctx context.Context, cfg ServeConfig) error {
	return newServer(cfg).serve(ctx)
}

func (s *server) serve(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	defer s.close()
	err := s.listen(ctx)
	if err == nil {
		err = s.reach(ctx)
	}
	taken := (*takenError)(nil)
	switch {
	case err == nil:
		return s.run(ctx)
	case ctx.Err() != nil: // told to stop while it started, and did
		s.sayStopping(ctx)
		return nil
	case errors.As(err, &taken):
		return s.beside(taken)
	default:
		return err
	}
}

func (cfg *ServeConfig) defaults() {
	if cfg.DataDir == "" {
		cfg.DataDir = DefaultDataDir
	}
	if cfg.EtcdListen == "" {
		cfg.EtcdListen = DefaultEtcdListen
	}
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	cfg.Client.Logger = cfg.Logger
}

// server is what Serve puts together. What is nil was not reached, and needs no closing.
type server struct {
	cfg      ServeConfig
	log      *zap.Logger
	jobs     []cronrunner.Job
	handlers *executor.Executor
	access   *httpapi.Access
	tls      *tls.Config
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	traces   *traces
	health   *health
	failed   chan error // HTTP stopped by itself
	signed   signature

	listener net.Listener
	http     *httpapi.Server
	serving  sync.WaitGroup
	etcd     *embedded
	conn     *connection
}

func newServer(cfg ServeConfig) *server {
	s := &server{registry: prometheus.NewRegistry(), health: &health{}, failed: make(chan error, 1)}
	if cfg.JSONLog && cfg.Logger != nil {
		cfg.Logger = s.signed.sign(cfg.Logger)
	}
	cfg.defaults()
	s.cfg, s.log = cfg, cfg.Logger
	s.handlers = executor.New(s.log)
	return s
}

// check finds every fault that can be found without etcd.
func (s *server) check(ctx context.Context) (err error) {
	cfg := &s.cfg
	if err := s.checkHTTP(); err != nil {
		return err
	}
	if cfg.Embed {
		if err := checkListen("--etcd-listen", cfg.EtcdListen, DefaultEtcdListen, cfg.Insecure, ""); err != nil {
			return err
		}
		if cfg.Client.CACert != "" || cfg.Client.Cert != "" || cfg.Client.Key != "" {
			return badInput("--cacert, --cert and --key need --endpoints: the embedded etcd does not use TLS")
		}
	}
	if s.jobs, err = loadJobs(cfg.ConfigFile, s.handlers); err != nil {
		return err
	}
	s.log.Info("jobs file read, once: what changes in it counts from the next start", zap.String("file", cfg.ConfigFile))
	if s.metrics, err = metrics.New(s.registry, cfg.Version); err != nil {
		return err
	}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// The scheduler checks the rest, so one is made for that, on a client that is connected to nothing.
	if _, err = s.scheduler(clientv3.NewCtxClient(ctx), ""); err != nil {
		return err
	}
	s.traces, err = startTraces(ctx, cfg.Version, s.log.Named("traces"))
	return err
}

func (s *server) scheduler(client *clientv3.Client, address string) (*cronrunner.Scheduler, error) {
	scheduler, err := cronrunner.New(client, cronrunner.Config{
		Prefix: s.cfg.Prefix, Namespace: s.cfg.Namespace,
		InstanceID: s.cfg.InstanceID, Version: s.cfg.Version, Address: address, Source: s.cfg.ConfigFile,
		LeaderTTL: s.cfg.LeaderTTL, DrainTimeout: s.cfg.DrainTimeout, MaxConcurrent: s.cfg.MaxConcurrent,
		Logger: s.log, Observer: s.metrics, CommitHook: s.committed, TracerProvider: s.traces.tracerProvider(),
	})
	if err != nil {
		return nil, badInput("%w", err)
	}
	for _, j := range s.jobs {
		if err := scheduler.Register(j); err != nil {
			return nil, badInput("%s: %w", s.cfg.ConfigFile, err)
		}
	}
	return scheduler, nil
}

func (s *server) committed(took time.Duration, mutations int, err error) {
	s.metrics.Committed(took, mutations, err)
	s.health.committed(err)
}

// listen has HTTP answer from now on.
func (s *server) listen(ctx context.Context) (err error) {
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen); err != nil {
		return listenError("HTTP", "--listen", s.cfg.Listen, err)
	}
	s.http = httpapi.New(httpapi.Config{
		Health: s.health, Metrics: s.registry, Access: s.access, TLS: s.tls, Hosts: s.cfg.HTTP.Hosts, Logger: s.log.Named("http"),
	})
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("HTTP on %s stopped: %w", s.listener.Addr(), err)
		}
	})
	return nil
}

// address is where people find HTTP.
func (s *server) address() string {
	u := advertised(s.listener.Addr().String())
	if s.tls != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// run runs the scheduler until ctx ends, or a part stops by itself.
func (s *server) run(ctx context.Context) error {
	scheduler, err := s.scheduler(s.conn.client, s.address())
	if err != nil {
		return err
	}
	keys := scheduler.Store().Keys()
	s.metrics.WatchElection(func() bool { return scheduler.Elector().Blocked() != "" })
	s.health.run(scheduler, s.conn, keys)
	// A store of its own: what people ask must not wait behind the commits of runs, nor they behind it.
	s.http.Connect(s.conn.client, state.NewStore(s.conn.client, keys, state.StoreConfig{Timeout: s.cfg.Client.CommandTimeout, Logger: s.log}))

	reaping, stopReaping := context.WithCancel(context.WithoutCancel(ctx)) // during the drain too
	ctx, cancel := context.WithCancelCause(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel(nil)
	defer stopReaping()
	watchers.Go(func() { executor.Reap(reaping) })
	watchers.Go(func() { s.watch(ctx, cancel) })

	s.sayUp(scheduler, keys)
	done := make(chan struct{})
	defer close(done)
	watchers.Go(func() {
		select {
		case <-s.cfg.Hurry:
			s.log.Warn("stopping at once: running jobs are told to stop")
			scheduler.Abort()
		case <-done:
		}
	})
	if err := scheduler.Run(ctx); err != nil {
		return err
	}
	if failure := (*partFailedError)(nil); errors.As(context.Cause(ctx), &failure) {
		return failure.err
	}
	s.log.Info("stopped")
	return nil
}

// partFailedError is why the scheduler was told to stop, when it was not the caller's will.
type partFailedError struct{ err error }

func (e *partFailedError) Error() string { return e.err.Error() }
func (e *partFailedError) Unwrap() error { return e.err }

// watch stops the scheduler when a part without which it cannot go on has stopped.
func (s *server) watch(ctx context.Context, stop context.CancelCauseFunc) {
	var err error
	select {
	case <-ctx.Done():
		s.sayStopping(ctx)
		s.health.draining.Store(true)
		return
	case err = <-s.etcdFailed():
	case err = <-s.failed:
	}
	s.log.Error("stopping: a part of this instance has failed", zap.Error(err))
	s.health.draining.Store(true)
	stop(&partFailedError{err})
}

func (s *server) sayStopping(ctx context.Context) {
	s.log.Info(fmt.Sprintf("stopping: %v; no new runs, running ones may finish; a second signal stops them", context.Cause(ctx)))
}

func (s *server) sayUp(scheduler *cronrunner.Scheduler, keys state.Keys) {
	s.log.Info("etcdcron is up",
		zap.String("instance", scheduler.ID()),
		zap.String("http", s.address()),
		zap.Strings("etcd", s.cfg.Client.Endpoints),
		zap.String("root", keys.Root()),
		zap.String("file", s.cfg.ConfigFile),
		zap.Int("jobs", len(s.jobs)))
	s.signed.know(scheduler.ID())
	if !s.cfg.JSONLog {
		s.log.Info("look at it with: " + s.lookCommand())
	}
}

// close ends what was started, in the order in which one needs the other.
func (s *server) close() {
	if s.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), httpCloseLimit)
		defer cancel()
		s.http.Shutdown(ctx)
		s.serving.Wait()
	}
	s.handlers.Close()
	s.traces.close()
	if s.conn != nil {
		s.conn.close()
	}
	if s.etcd != nil {
		s.etcd.stop()
	}
}
