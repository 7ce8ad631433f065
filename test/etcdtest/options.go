package etcdtest

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	defaultElectionTimeout = 500 * time.Millisecond
	aloneElectionTimeout   = 100 * time.Millisecond // of one member, which waits for it when it starts
	minElectionTimeout     = 50 * time.Millisecond
	maxElectionTimeout     = 50 * time.Second // etcd's own limit

	// ticksPerElection is etcd's own proportion of heartbeat to election timeout.
	ticksPerElection = 10

	maxMembers = 7 // more voters are not recommended by etcd
)

// Option changes how [Start] and [Run] set a cluster up.
type Option func(*options)

type options struct {
	members  int
	election time.Duration
	fsync    bool
	logger   *zap.Logger
	config   []func(*embed.Config)
}

// WithMembers sets the number of members, 1 to 7. Default 1. Three survive the loss of one.
func WithMembers(n int) Option {
	return func(o *options) { o.members = n }
}

// WithElectionTimeout sets the time without a heartbeat after which a member calls an election; the
// heartbeat is a tenth of it. 50 ms to 50 s; the default, or 0, is 500 ms, and 100 ms for one member,
// which waits up to that long before it elects itself.
//
// It also sets the shortest lease TTL the server grants: 1.5 election timeouts, rounded up to whole
// seconds. A request for less is granted as that much. So up to 666 ms gives a TTL of 1 s, up to
// 1333 ms a TTL of 2 s. Take a longer one when a busy machine makes a cluster of three lose its
// leader for no other reason.
func WithElectionTimeout(d time.Duration) Option {
	return func(o *options) { o.election = d }
}

// WithFsync makes etcd write through to the disk, as in production. By default it does not: a test
// loses nothing by it as long as the machine stays up, and runs several times faster.
func WithFsync() Option {
	return func(o *options) { o.fsync = true }
}

// WithLogger sends etcd's log to lg; zaptest.NewLogger(t) shows it in the log of the test. Default
// nil: no log.
func WithLogger(lg *zap.Logger) Option {
	return func(o *options) { o.logger = lg }
}

// WithConfig changes the configuration of every member before each of its starts, for what has no
// option of its own: a small QuotaBackendBytes to meet NOSPACE, a short AuthTokenTTL. What the
// package itself relies on (name, folder, addresses, cluster, logger) is set after it and wins.
func WithConfig(change func(*embed.Config)) Option {
	return func(o *options) { o.config = append(o.config, change) }
}

func newOptions(opts []Option) (*options, error) {
	o := &options{members: 1}
	for _, opt := range opts {
		opt(o)
	}
	if o.election == 0 {
		o.election = defaultElectionTimeout
		if o.members == 1 {
			o.election = aloneElectionTimeout
		}
	}
	if o.members < 1 || o.members > maxMembers {
		return nil, fmt.Errorf("etcdtest: WithMembers(%d): want 1 to %d", o.members, maxMembers)
	}
	if o.election < minElectionTimeout || o.election > maxElectionTimeout {
		return nil, fmt.Errorf("etcdtest: WithElectionTimeout(%v): want %v to %v",
			o.election, minElectionTimeout, maxElectionTimeout)
	}
	if o.logger == nil {
		o.logger = zap.NewNop()
	}
	// etcd ends the process on a fatal error. With no log to see, the test binary would just be gone;
	// a panic says where and why.
	o.logger = o.logger.WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	return o, nil
}

// embedConfig is the part of the configuration that all members share.
func (o *options) embedConfig() *embed.Config {
	cfg := embed.NewConfig()
	cfg.TickMs = uint(o.election.Milliseconds()) / ticksPerElection
	cfg.ElectionMs = cfg.TickMs * ticksPerElection
	cfg.UnsafeNoFsync = !o.fsync
	cfg.EnableGRPCGateway = false
	for _, change := range o.config {
		change(cfg)
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(o.logger)
	return cfg
}
