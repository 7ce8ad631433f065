package etcdtest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// startAttempts bounds how often Run tries with other ports when somebody else took one.
const startAttempts = 3

var (
	// ErrClosed is returned for a restart of what is closed for good.
	ErrClosed = errors.New("the cluster is closed")

	// ErrNoLeader is returned when there is no leader at the moment.
	ErrNoLeader = errors.New("no running member leads")
)

// Cluster is one or more etcd servers in this process, with their data in a temporary folder. All
// methods may be called concurrently.
type Cluster struct {
	options *options
	dir     string
	members []*Member

	closeOnce sync.Once
	closeErr  error
}

// Start starts a cluster for the test and closes it when the test ends. It fails the test when the
// cluster does not start. See [Run] for what it waits for.
func Start(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	c, err := Run(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Run is [Start] without a test: for an Example, for TestMain, for any other program. It returns when
// every member serves, or with an error after at most 30 s a member. The caller closes the cluster.
func Run(opts ...Option) (*Cluster, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	return run(o, newPort)
}

func run(o *options, newPort func() (*port, error)) (*Cluster, error) {
	for attempt := 1; ; attempt++ {
		c, err := newCluster(o, newPort)
		if err != nil {
			return nil, err
		}
		err = c.start()
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.Close())
		if !errors.Is(err, syscall.EADDRINUSE) || attempt == startAttempts {
			return nil, err
		}
	}
}

func newCluster(o *options, newPort func() (*port, error)) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "etcdtest-")
	if err != nil {
		return nil, fmt.Errorf("etcdtest: %w; TMPDIR says where temporary folders go", err)
	}
	c := &Cluster{options: o, dir: dir}
	for i := range o.members {
		m, err := newMember(c, fmt.Sprintf("m%d", i), newPort)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("etcdtest: %w", err), c.Close())
		}
		c.members = append(c.members, m)
	}
	return c, nil
}

// start starts all members and waits for all. One after the other: a new member first asks the others
// whether it is known to them, and one that listens but does not answer yet costs it a second.
func (c *Cluster) start() error {
	for _, m := range c.members {
		m.change.Lock()
		defer m.change.Unlock()
	}
	instances := make([]*instance, len(c.members))
	for i, m := range c.members {
		in, err := m.start()
		if err != nil {
			return err
		}
		instances[i] = in
	}
	for i, m := range c.members {
		if err := m.waitReady(instances[i]); err != nil {
			return err
		}
	}
	return nil
}

// Members are the members, in the order of their names. The slice is the caller's.
func (c *Cluster) Members() []*Member { return slices.Clone(c.members) }

// Member is the i-th member, from 0. It panics when there is none.
func (c *Cluster) Member(i int) *Member { return c.members[i] }

// Endpoints are the addresses of all members for clients, "127.0.0.1:port", running or not. The slice
// is the caller's.
func (c *Cluster) Endpoints() []string {
	endpoints := make([]string, len(c.members))
	for i, m := range c.members {
		endpoints[i] = m.Endpoint()
	}
	return endpoints
}

// Stop ends all members at the same time, each as [Member.Stop] does, but with nobody left to hand
// over to. The data and the ports stay, for Restart.
func (c *Cluster) Stop() error {
	return c.each(func(m *Member) error {
		m.change.Lock()
		defer m.change.Unlock()
		return m.stop(drainTime, nil)
	})
}

// Restart starts all members with the data and on the ports they had, after a Stop of those that still
// run. It returns when every member serves, or with an error after at most 30 s a member.
func (c *Cluster) Restart() error {
	if err := c.Stop(); err != nil {
		return err
	}
	return c.start()
}

// Close ends all members for good, at once, and removes their data. Calling it again returns what the
// first call did.
func (c *Cluster) Close() error {
	c.closeOnce.Do(func() {
		c.closeErr = c.each((*Member).close)
		if err := os.RemoveAll(c.dir); err != nil {
			c.closeErr = errors.Join(c.closeErr, fmt.Errorf("etcdtest: remove the data: %w", err))
		}
	})
	return c.closeErr
}

// Leader is the member that leads, or nil when there is none at the moment: while one is elected, and
// after the loss of a quorum once the old leader has noticed it.
func (c *Cluster) Leader() *Member {
	var leader *Member
	var highest uint64
	for _, m := range c.members {
		in := m.instance()
		if in == nil {
			continue
		}
		if leads, term := in.leads(); leads && term >= highest {
			leader, highest = m, term
		}
	}
	return leader
}

// MoveLeader makes the given member the leader, within 2 s or with an error. It is [ErrNoLeader] when
// there is none to hand over.
func (c *Cluster) MoveLeader(to *Member) error {
	leader := c.Leader()
	if leader == nil {
		return fmt.Errorf("etcdtest: move the leader to %s: %w", to.name, ErrNoLeader)
	}
	if leader == to {
		return nil
	}
	from, heir := leader.instance(), to.instance()
	if from == nil || heir == nil {
		return fmt.Errorf("etcdtest: move the leader from %s to %s: one of them is stopped", leader.name, to.name)
	}
	if err := from.moveLeader(heir, handoverTimeout); err != nil {
		return fmt.Errorf("etcdtest: move the leader from %s to %s: %w", leader.name, to.name, err)
	}
	return nil
}

// heir is somebody to hand m's leadership over to, or nil.
func (c *Cluster) heir(m *Member) *instance {
	for _, other := range c.members {
		if other == m {
			continue
		}
		if in := other.instance(); in != nil && in.ready() {
			return in
		}
	}
	return nil
}

// initialCluster is etcd's --initial-cluster.
func (c *Cluster) initialCluster() string {
	peers := make([]string, len(c.members))
	for i, m := range c.members {
		u := httpURL(m.peers.Endpoint())
		peers[i] = m.name + "=" + u.String()
	}
	return strings.Join(peers, ",")
}

func (c *Cluster) hasQuorum() bool {
	running := 0
	for _, m := range c.members {
		if m.Running() {
			running++
		}
	}
	return running > len(c.members)/2
}

// each does the same to all members at the same time.
func (c *Cluster) each(do func(*Member) error) error {
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() { errs[i] = do(m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
