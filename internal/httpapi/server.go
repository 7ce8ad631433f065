package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	maxStreams    = 32 // requests at once on a connection of HTTP/2
)

// Config is what a server is made of.
type Config struct {
	Health  Health              // required
	Metrics prometheus.Gatherer // required
	Access  *Access             // who may do what; nil lets everybody do everything
	TLS     *tls.Config         // see [LoadTLS]; nil for none
	Hosts   []string            // names that this machine is called by, beside localhost and addresses; see doc.go
	Logger  *zap.Logger         // default none
}

// Server answers over HTTP. Its methods may be called at once from anywhere.
type Server struct {
	cfg  Config
	log  *zap.Logger
	http *http.Server

	crowd   *crowd
	etcd    atomic.Pointer[backend] // nil until etcd is reached
	reading chan struct{}           // a place for each read of etcd at once
	asking  chan struct{}           // and for each change

	closing chan struct{} // closed when the server stops: streams end
	close   sync.Once
}

// backend is the etcd that answers come from.
type backend struct {
	client *clientv3.Client
	store  *state.Store
	hub    *hub
}

// New returns a server that is ready to Serve. It starts nothing.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, crowd: newCrowd(maxConnections),
		reading: make(chan struct{}, maxReads), asking: make(chan struct{}, maxChanges),
		closing: make(chan struct{}),
	}
	// Most of what a server has to say is about clients that went away.
	errorLog, _ := zap.NewStdLogAt(cfg.Logger, zapcore.DebugLevel)
	s.http = &http.Server{
		Handler:           s.Handler(),
		TLSConfig:         cfg.TLS,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnState:         s.crowd.changed,
		ConnContext:       withConn,
		ErrorLog:          errorLog,
	}
	return s
}

// Connect has the server answer of what is in etcd from now on. It closes neither client nor store.
func (s *Server) Connect(client *clientv3.Client, store *state.Store) {
	s.etcd.Store(&backend{client: client, store: store, hub: newHub(store)})
}

// Serve answers on ln until Shutdown, and then returns http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error {
	if s.cfg.TLS != nil {
		return s.http.ServeTLS(ln, "", "")
	}
	return s.http.Serve(ln)
}

// Shutdown ends the streams, lets other answers go on until ctx ends, and returns when etcd is watched no more.
func (s *Server) Shutdown(ctx context.Context) {
	s.close.Do(func() { close(s.closing) })
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // an error is of a connection that is gone anyway
	}
	if b := s.etcd.Load(); b != nil {
		b.hub.close()
	}
}

// errStarting is the answer of an instance that has not reached etcd yet.
var errStarting = &fault.Error{
	Kind: fault.Unavailable, Err: errNoEtcd, Hint: "try again; GET /readyz says what is waited for",
}
