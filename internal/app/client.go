package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

// Defaults of a ClientConfig, as etcdctl has them.
const (
	DefaultDialTimeout    = 2 * time.Second
	DefaultCommandTimeout = 5 * time.Second
)

// How a client keeps its connections.
const (
	// A hung member is noticed after these two together. gRPC pings no oftener than every 10 s, and etcd
	// allows no less than 5 s; what is on its way in the meantime is bounded by its own deadline, and by
	// the kernel's TCP_USER_TIMEOUT, which gRPC sets to the second.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 3 * time.Second
	// gRPC would let two minutes pass between tries, so that an etcd that is back would not be found.
	reconnectFirst = 200 * time.Millisecond
	reconnectLimit = 2 * time.Second
	connectTimeout = 5 * time.Second
)

// ClientConfig is how to reach etcd, as etcdctl's flags say it.
type ClientConfig struct {
	// Endpoints are host:port, http://host:port, https://host:port or unix:///path. Required.
	Endpoints []string
	// CACert, Cert and Key are files in PEM. With any of them TLS is used. Cert and Key belong together;
	// they are read again for every connection.
	CACert, Cert, Key string
	// User is name or name:password. PasswordFile holds the password; white space around it is cut.
	User, PasswordFile string
	// DialTimeout is how long to wait for a connection. Default 2 s.
	DialTimeout time.Duration
	// CommandTimeout is how long to wait for the first answer, once connected. Default 5 s.
	CommandTimeout time.Duration
	// Logger gets what etcd's client has to say, at a bounded rate. Default none.
	Logger *zap.Logger
}

// Connect returns a client that has reached etcd: an etcd that has a leader and takes our credentials.
// Its error is ErrNoConnection, with the endpoints, the reason and what to try, or ErrBadInput.
func Connect(ctx context.Context, cfg ClientConfig) (*clientv3.Client, error) {
	conn, err := dial(ctx, cfg, zapcore.ErrorLevel) // what happens is told by the error
	if err != nil {
		return nil, err
	}
	if err := conn.reach(ctx); err != nil {
		conn.close()
		return nil, err
	}
	return conn.client, nil
}

// connection is a client and how it was made.
type connection struct {
	cfg    ClientConfig
	client *clientv3.Client
}

// dial makes a connection, without waiting for etcd, unless there is a user: then its password is checked.
func dial(ctx context.Context, cfg ClientConfig, level zapcore.Level) (*connection, error) {
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = DefaultDialTimeout
	}
	if cfg.CommandTimeout <= 0 {
		cfg.CommandTimeout = DefaultCommandTimeout
	}
	c := &connection{cfg: cfg}
	conf, err := cfg.clientConfig()
	if err != nil {
		return nil, err
	}
	// The client outlives ctx, which only ends the making of it.
	clientCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	clientCtx, seen := witnessed(clientCtx)
	conf.Context = clientCtx
	conf.Logger = quiet(cfg.Logger, "etcd-client", level)
	if c.client, err = clientv3.New(conf); err != nil {
		cancel()
		return nil, c.failure(ctx, err, seen)
	}
	return c, nil
}

// clientConfig checks cfg and makes etcd's configuration of it.
func (cfg ClientConfig) clientConfig() (clientv3.Config, error) {
	tlsConf, err := cfg.tls()
	if err != nil {
		return clientv3.Config{}, err
	}
	if err := checkEndpoints(cfg.Endpoints, tlsConf != nil); err != nil {
		return clientv3.Config{}, err
	}
	user, password, err := cfg.credentials()
	if err != nil {
		return clientv3.Config{}, err
	}
	return clientv3.Config{
		Endpoints:            cfg.Endpoints,
		DialTimeout:          cfg.DialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		PermitWithoutStream:  false, // etcd cuts clients that ping without a stream
		TLS:                  tlsConf,
		Username:             user,
		Password:             password,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(witness),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: reconnectFirst, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectLimit},
				MinConnectTimeout: connectTimeout,
			}),
		},
	}, nil
}

// tls is nil when no file is given: then only the scheme of the endpoints decides.
func (cfg ClientConfig) tls() (*tls.Config, error) {
	if cfg.CACert == "" && cfg.Cert == "" && cfg.Key == "" {
		return nil, nil //nolint:nilnil // documented
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CACert != "" {
		pem, err := os.ReadFile(cfg.CACert)
		if err != nil {
			return nil, badInput("--cacert: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, badInput("--cacert: %s holds no certificate in PEM", cfg.CACert)
		}
	}
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, badInput("--cert and --key belong together; give both, or none")
	}
	if cfg.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, badInput("--cert %s with --key %s: %w", cfg.Cert, cfg.Key, err)
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return conf, nil
}

func (cfg ClientConfig) credentials() (user, password string, err error) {
	user, password, given := strings.Cut(cfg.User, ":")
	switch {
	case cfg.PasswordFile != "" && user == "":
		return "", "", badInput("--password-file needs --user")
	case cfg.PasswordFile != "" && given:
		return "", "", badInput("the password is given twice: in --user and by --password-file")
	case cfg.PasswordFile != "":
		b, err := os.ReadFile(cfg.PasswordFile)
		if err != nil {
			return "", "", badInput("--password-file: %w", err)
		}
		password = strings.TrimSpace(string(b))
	}
	if user != "" && password == "" {
		return "", "", badInput("user %q has no password; give it with --password-file", user)
	}
	return user, password, nil
}

// reach returns once etcd has answered, within the dial timeout and the command timeout.
func (c *connection) reach(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout+c.cfg.CommandTimeout)
	defer cancel()
	defer time.AfterFunc(c.cfg.DialTimeout, func() {
		if c.client.ActiveConnection().GetState() != connectivity.Ready {
			cancel()
		}
	}).Stop()
	callCtx, seen := witnessed(callCtx)
	// Only an etcd with a leader can answer that. To be refused the key is an answer too.
	_, err := c.client.Get(clientv3.WithRequireLeader(callCtx), "health", clientv3.WithKeysOnly())
	if err == nil || errors.Is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	return c.failure(ctx, err, seen)
}

func (c *connection) close() {
	_ = c.client.Close() // an error says that it was closed
}
