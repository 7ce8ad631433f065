package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second

	// drainTime is what a request under way gets to end when a member is stopped.
	drainTime = 250 * time.Millisecond

	handoverTimeout = 2 * time.Second
)

// Member is one etcd server of a [Cluster]. Its name, folder and ports stay the same for life. All
// methods may be called concurrently; those that stop and start it wait for each other.
type Member struct {
	cluster      *Cluster
	name         string
	dataDir      string
	client, peer *port

	// peers stands before the peer port, where the other members connect. Each stop cuts it: etcd's read
	// timeout races with net/http's end of a request, and a connection on which it has won keeps the
	// server from closing for 1 s and its goroutines alive for 5 s, unless the other end closes.
	peers *Proxy

	// change is held while the member stops or starts; it guards closed and stuck.
	change sync.Mutex
	closed bool
	stuck  error // the stop that did not end: its etcd may still hold the data folder

	mu      sync.Mutex
	current *instance // nil while stopped
}

func newMember(c *Cluster, name string, newPort func() (*port, error)) (*Member, error) {
	client, err := newPort()
	if err != nil {
		return nil, err
	}
	peer, err := newPort()
	if err != nil {
		client.release()
		return nil, err
	}
	peers, err := RunProxy(peer.address())
	if err != nil {
		client.release()
		peer.release()
		return nil, err
	}
	return &Member{
		cluster: c, name: name, dataDir: filepath.Join(c.dir, name), client: client, peer: peer, peers: peers,
	}, nil
}

// Name is the member's name in the cluster: m0, m1 and so on.
func (m *Member) Name() string { return m.name }

// Endpoint is the member's address for clients, "127.0.0.1:port".
func (m *Member) Endpoint() string { return m.client.address() }

// DataDir is the folder with the member's data. It may be changed while the member is stopped, as by a
// restore from a snapshot.
func (m *Member) DataDir() string { return m.dataDir }

// Running says whether the member runs. It may still be without a quorum.
func (m *Member) Running() bool { return m.instance() != nil }

// Stop ends the member as SIGTERM does: requests under way get a quarter of a second to end, then
// connections are closed, and a leader hands the leadership over to another member. Stopping a
// stopped member does nothing.
func (m *Member) Stop() error {
	m.change.Lock()
	defer m.change.Unlock()
	return m.stop(drainTime, m.cluster.heir(m))
}

// Kill ends the member at once: connections are closed in the middle of requests and nothing is handed
// over, so that the others notice only by their election timeout. Unlike a power cut it loses nothing
// of what was written. Killing a stopped member does nothing.
func (m *Member) Kill() error {
	m.change.Lock()
	defer m.change.Unlock()
	return m.stop(0, nil)
}

// Restart starts the member with the data and on the ports it had, after a Stop if it still runs. It
// returns when the member serves, or, where too few others run for a quorum, when it waits for them.
func (m *Member) Restart() error {
	m.change.Lock()
	defer m.change.Unlock()
	if err := m.stop(drainTime, m.cluster.heir(m)); err != nil {
		return err
	}
	in, err := m.start()
	if err != nil {
		return err
	}
	if !m.cluster.hasQuorum() {
		return nil
	}
	return m.waitReady(in)
}

// start needs m.change. A member that runs goes on running.
func (m *Member) start() (*instance, error) {
	if in := m.instance(); in != nil {
		return in, nil
	}
	if m.closed {
		return nil, fmt.Errorf("etcdtest: start %s: %w", m.name, ErrClosed)
	}
	if m.stuck != nil {
		return nil, fmt.Errorf("etcdtest: start %s: its last life has not ended: %w", m.name, m.stuck)
	}
	m.peers.Heal()
	var in *instance
	err := within(startTimeout, func() (err error) {
		in, err = startInstance(m.config())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("etcdtest: start %s on %s (data in %s): %w", m.name, m.Endpoint(), m.dataDir, err)
	}
	m.setInstance(in)
	return in, nil
}

// waitReady ends an instance that does not become ready, for the member to be either up or stopped.
func (m *Member) waitReady(in *instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err := in.waitReady(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not ready in %v: no leader among its members, or a machine too busy for an election "+
			"timeout of %v; try WithElectionTimeout with more, WithLogger to see etcd's log, or less in parallel",
			startTimeout, m.cluster.options.election)
	}
	err = fmt.Errorf("etcdtest: start %s on %s: %w", m.name, m.Endpoint(), err)
	return errors.Join(err, m.stop(0, nil))
}

// stop needs m.change.
func (m *Member) stop(drain time.Duration, heir *instance) error {
	in := m.instance()
	if in == nil {
		return m.stuck
	}
	m.setInstance(nil) // before it ends: nobody is to be given an instance on its way out
	err := within(stopTimeout, func() error {
		in.retire(drain, heir)
		m.peers.Cut()
		in.end()
		return nil
	})
	if err != nil {
		m.stuck = fmt.Errorf("etcdtest: stop %s on %s: %w; a connection that was opened to it and never sent "+
			"a byte holds it up: close it first", m.name, m.Endpoint(), err)
	}
	return m.stuck
}

// close stops the member for good.
func (m *Member) close() error {
	m.change.Lock()
	defer m.change.Unlock()
	m.closed = true
	err := m.stop(0, nil)
	m.peers.Close()
	m.client.release()
	m.peer.release()
	return err
}

func (m *Member) instance() *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

func (m *Member) setInstance(in *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = in
}

func (m *Member) config() *embed.Config {
	cfg := m.cluster.options.embedConfig()
	cfg.Name = m.name
	cfg.Dir = m.dataDir
	cfg.ListenClientUrls = []url.URL{httpURL(m.client.address())}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.ListenPeerUrls = []url.URL{httpURL(m.peer.address())}
	cfg.AdvertisePeerUrls = []url.URL{httpURL(m.peers.Endpoint())}
	cfg.InitialCluster = m.cluster.initialCluster()
	cfg.SocketOpts.ReusePort = reusePort
	return cfg
}

func httpURL(address string) url.URL { return url.URL{Scheme: "http", Host: address} }

// within runs f, which cannot be told to stop, and waits no longer than d for it.
func within(d time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("still not done after %v", d)
	}
}
