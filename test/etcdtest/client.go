package etcdtest

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	dialTimeout = 2 * time.Second

	// keepAliveTime is the least that gRPC lets a client have.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 2 * time.Second

	minReconnect = 50 * time.Millisecond
	maxReconnect = 500 * time.Millisecond
)

// NewClient connects a client to the endpoints, with waits that suit a test: an attempt to connect
// takes at most 2 s, and a lost connection is tried again after 50 ms, and at most 500 ms later each
// further time (gRPC's own default goes up to 2 minutes). A silent connection is given up after 12 s,
// as gRPC allows no ping sooner than 10 s. It logs nothing.
//
// It returns at once, whether or not anybody answers there. The caller closes the client.
func NewClient(endpoints ...string) (*clientv3.Client, error) {
	reconnect := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: minReconnect, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnect},
		MinConnectTimeout: dialTimeout,
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(reconnect)},
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("etcdtest: client of %v: %w", endpoints, err)
	}
	return client, nil
}

// Client returns a new client of all members, made by [NewClient] and closed when the test ends.
func (c *Cluster) Client(tb testing.TB) *clientv3.Client {
	tb.Helper()
	return testClient(tb, c.Endpoints()...)
}

// Proxied returns a new client that knows the members only through the proxies, of which the i-th
// stands before the i-th member. All are closed when the test ends. The client stays behind the
// proxies as long as nobody calls its Sync, which asks etcd for the addresses of the members.
func (c *Cluster) Proxied(tb testing.TB) (*clientv3.Client, []*Proxy) {
	tb.Helper()
	endpoints := c.Endpoints()
	proxies := make([]*Proxy, len(endpoints))
	for i, member := range endpoints {
		proxies[i] = NewProxy(tb, member)
		endpoints[i] = proxies[i].Endpoint()
	}
	return testClient(tb, endpoints...), proxies
}

func testClient(tb testing.TB, endpoints ...string) *clientv3.Client {
	tb.Helper()
	client, err := NewClient(endpoints...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}
