package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

const (
	etcdStartLimit = 30 * time.Second
	etcdCloseLimit = 15 * time.Second

	memberName = "etcdcron"
	// memberURL is what the only member is known by to itself. Nothing listens there.
	memberURL = "http://127.0.0.1:2380"

	// compactEvery is how long etcd keeps the history of keys. Nobody reads it: who falls behind lists
	// again. At 1,000 runs a second five minutes are some 300 MB of the quota of 2 GiB.
	compactEvery = "5m"

	// slowEtcd is how long a request may take before etcd warns of its disk. Its own 100 ms are passed on
	// any busy laptop.
	slowEtcd = 500 * time.Millisecond

	// silent is above every level that etcd logs at and goes on.
	silent = zapcore.DPanicLevel
)

var (
	errEtcdSilent = fmt.Errorf("etcd was not ready within %s; look at its disk, or start with --log-level debug", etcdStartLimit)
	errEndedEarly = errors.New("it ended without a word")
)

// embedded is an etcd of our own, of one member.
type embedded struct {
	etcd     *embed.Etcd
	dir      *dataDir
	endpoint string // where a client on this machine finds it
	log      *zap.Logger
	level    zap.AtomicLevel // from which on etcd may log
	died     lastWords
	failed   chan error // yields once, when etcd has stopped by itself

	closing    context.Context //nolint:containedctx // the life of the streams that etcd serves
	endStreams context.CancelFunc
}

// startEmbedded starts an etcd that listens on listen and keeps its data in dir, and returns when it is
// ready. Its error is ErrBadInput for a port or a directory that it cannot have, and ctx's cause when
// ctx ends first.
func startEmbedded(ctx context.Context, dir, listen string, log *zap.Logger) (*embedded, error) {
	d, err := openDataDir(dir)
	if err != nil {
		return nil, err
	}
	// While it starts, etcd warns of much that is meant to be so.
	e := &embedded{dir: d, log: log, level: zap.NewAtomicLevelAt(zapcore.ErrorLevel), died: make(lastWords, 1), failed: make(chan error, 1)}
	e.closing, e.endStreams = context.WithCancel(context.Background())
	limit, cancel := context.WithTimeoutCause(ctx, etcdStartLimit, errEtcdSilent)
	defer cancel()

	started := make(chan error, 1)
	go func() {
		err := errEndedEarly // stays when etcd ends this goroutine: see lastWords
		defer func() { started <- err }()
		e.etcd, err = embed.StartEtcd(e.config(listen))
	}()
	select {
	case err = <-started:
	case err = <-e.died: // one of its goroutines; the others may wait for it for ever
	case <-limit.Done():
		go func() { // nothing can hurry it
			if err := <-started; err == nil {
				e.abort()
			} else {
				d.unlock()
			}
		}()
		return nil, context.Cause(limit)
	}
	if err != nil {
		d.unlock()
		return nil, e.startError(listen, err)
	}

	go e.watch()
	select {
	case <-e.etcd.Server.ReadyNotify():
	case err = <-e.failed:
		e.abort()
		return nil, err
	case <-limit.Done():
		e.abort()
		return nil, context.Cause(limit)
	}
	e.level.SetLevel(zapcore.WarnLevel)
	e.endpoint = local(e.etcd.Clients[0].Addr().String())
	if err := errors.Join(d.finish(), d.sign(e.endpoint)); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

func (e *embedded) config(listen string) *embed.Config {
	member := url.URL{Scheme: "http", Host: listen}
	conf := embed.NewConfig()
	conf.Name = memberName
	conf.Dir = e.dir.path
	conf.ListenClientUrls = []url.URL{member}
	conf.AdvertiseClientUrls = []url.URL{advertised(listen)}
	conf.ListenPeerUrls = nil
	peer, _ := url.Parse(memberURL) // a constant
	conf.AdvertisePeerUrls = []url.URL{*peer}
	conf.InitialCluster = conf.InitialClusterFromName(memberName)

	conf.WarningApplyDuration, conf.WarningUnaryRequestDuration = slowEtcd, slowEtcd
	conf.AutoCompactionMode = embed.CompactorModePeriodic
	conf.AutoCompactionRetention = compactEvery

	// A page in the user's browser must not get in: no gateway from HTTP to the keys, no origin but its own
	// (none at all would mean any), and no name that an attacker's name server has pointed to this machine.
	conf.EnableGRPCGateway = false
	conf.CORS = map[string]struct{}{member.String(): {}}
	if host, _, _ := net.SplitHostPort(listen); isLoopback(host) {
		conf.HostWhitelist = map[string]struct{}{"localhost": {}, "127.0.0.1": {}, "[::1]": {}, host: {}}
	}

	conf.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainStreamInterceptor(e.boundStream)}

	log := quiet(e.log, "etcd", e.level).WithOptions(zap.WithFatalHook(e.died), zap.WithPanicHook(e.died))
	conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return conf
}

// boundStream ends a client's stream when etcd closes. It would wait seven seconds for somebody's watch.
func (e *embedded) boundStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(e.closing, cancel)()
	return handle(srv, &boundedStream{stream, ctx})
}

type boundedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // that is what a stream has
}

func (s *boundedStream) Context() context.Context { return s.ctx }

// advertised is how clients of other machines would find an etcd that listens on listen.
func advertised(listen string) url.URL {
	if host, port, err := net.SplitHostPort(listen); err == nil && isUnspecified(listen) {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
		listen = net.JoinHostPort(host, port)
	}
	return url.URL{Scheme: "http", Host: listen}
}

// startError says why etcd did not start.
func (e *embedded) startError(listen string, err error) error {
	select {
	case said := <-e.died:
		err = said
	default:
	}
	if opErr := (*net.OpError)(nil); errors.As(err, &opErr) && opErr.Op == "listen" {
		return listenError("etcd", "--etcd-listen", listen, err)
	}
	return fmt.Errorf("etcd did not start on the data directory %s: %w; look at the directory, or choose another with --data-dir", e.dir.path, err)
}

// watch tells when etcd stops by itself. It ends with etcd.
func (e *embedded) watch() {
	var why error
	select {
	case why = <-e.died:
	case why = <-e.etcd.Err(): // one of its servers; nil when it was closed
	case <-e.etcd.Server.StopNotify():
	}
	err := fmt.Errorf("the embedded etcd with its data in %s stopped by itself", e.dir.path)
	if why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	e.failed <- err
}

// abort ends an etcd that may never have become ready. Close alone would wait for that.
func (e *embedded) abort() {
	e.close(func() {
		e.etcd.Server.Stop()
		e.etcd.Close()
	})
}

// stop ends etcd, within a time limit.
func (e *embedded) stop() { e.close(e.etcd.Close) }

func (e *embedded) close(end func()) {
	e.endStreams()
	e.level.SetLevel(silent) // it takes the end of each of its servers for an error
	done := make(chan struct{})
	go func() {
		defer close(done)
		end()
	}()
	limit := time.NewTimer(etcdCloseLimit)
	defer limit.Stop()
	select {
	case <-done:
		e.dir.unlock()
	case <-limit.C: // the directory stays locked while etcd may still write
		e.log.Warn("the embedded etcd has not stopped in time and is left behind", zap.Duration("limit", etcdCloseLimit))
	}
}
