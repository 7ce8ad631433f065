package etcdtest

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

func TestStartServes(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := Start(t)
	t.Logf("started in %v", time.Since(began))
	client := c.Client(t)
	put(t, client, "k", "v")
	require.Equal(t, "v", get(t, client, "k"))
	require.Equal(t, []string{c.Member(0).Endpoint()}, c.Endpoints())
	require.Equal(t, c.Member(0), c.Leader())
}

func TestLeaseTTLIsGrantedAsAsked(t *testing.T) {
	t.Parallel()
	client := Start(t).Client(t)
	for _, ttl := range []int64{1, 2} {
		lease, err := client.Grant(timeout(t, long), ttl)
		require.NoError(t, err)
		require.Equal(t, ttl, lease.TTL)
	}
}

func TestElectionTimeoutSetsTheLeastLeaseTTL(t *testing.T) {
	t.Parallel()
	client := Start(t, WithElectionTimeout(1300*time.Millisecond)).Client(t)
	lease, err := client.Grant(timeout(t, long), 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, lease.TTL)
}

func TestRestartKeepsDataAndPorts(t *testing.T) {
	t.Parallel()
	c := Start(t)
	client := c.Client(t)
	endpoints := c.Endpoints()
	put(t, client, "k", "v")
	for range 5 {
		require.NoError(t, c.Stop())
		require.False(t, c.Member(0).Running())
		_, err := net.Dial("tcp", c.Endpoints()[0])
		require.ErrorIs(t, err, syscall.ECONNREFUSED)

		require.NoError(t, c.Restart())
		require.Equal(t, endpoints, c.Endpoints())
		require.Equal(t, "v", get(t, client, "k"))
	}
}

func TestStopDoesNotWaitForOpenStreams(t *testing.T) {
	t.Parallel()
	c := Start(t)
	client := c.Client(t)
	watch := client.Watch(t.Context(), "k", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)
	lease, err := client.Grant(timeout(t, long), 60)
	require.NoError(t, err)
	alive, err := client.KeepAlive(t.Context(), lease.ID)
	require.NoError(t, err)
	require.NotNil(t, <-alive)

	began := time.Now()
	require.NoError(t, c.Stop())
	require.Less(t, time.Since(began), 4*time.Second, "embed alone takes 6 s")

	require.NoError(t, c.Restart())
	put(t, client, "k", "v")
	require.Equal(t, "v", string((<-watch).Events[0].Kv.Value))
}

func TestStopAndKillUnderLoad(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer cancel()
	for range 8 {
		client := c.Client(t)
		load.Go(func() {
			for ctx.Err() == nil {
				_, _ = client.Put(ctx, "k", "v")
				_, _ = client.Get(ctx, "k", clientv3.WithSerializable())
			}
		})
	}
	client := c.Client(t)
	for _, stop := range []func() error{c.Stop, c.Member(0).Kill, c.Stop, c.Member(0).Kill} {
		put(t, client, "served", "yes")
		require.NoError(t, stop())
		require.NoError(t, c.Restart())
	}
}

func TestKillAndRestartOfAMember(t *testing.T) {
	t.Parallel()
	c := Start(t)
	client := c.Client(t)
	put(t, client, "k", "v")
	require.NoError(t, c.Member(0).Kill())
	require.NoError(t, c.Member(0).Kill())
	require.Nil(t, c.Leader())
	require.NoError(t, c.Member(0).Restart())
	require.Equal(t, "v", get(t, client, "k"))
	require.NoError(t, c.Member(0).Restart(), "of one that runs")
	require.Equal(t, "v", get(t, client, "k"))
}

func TestThreeMembers(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := Start(t, WithMembers(3))
	t.Logf("started in %v", time.Since(began))
	client := c.Client(t)
	put(t, client, "k", "all three")

	first := c.Leader()
	require.NotNil(t, first)
	require.NoError(t, first.Kill())
	putUntilDone(t, client, "k", "without the leader")

	second := c.Leader()
	require.NotNil(t, second)
	require.NotEqual(t, first, second)
	require.NoError(t, second.Stop())
	_, err := client.Put(timeout(t, time.Second), "k", "one alone")
	require.Error(t, err)

	require.NoError(t, second.Restart())
	putUntilDone(t, client, "k", "two again")
	require.NoError(t, first.Restart())
	require.Equal(t, "two again", get(t, client, "k"))
}

func TestMembersOfAStoppedClusterStartOneByOne(t *testing.T) {
	t.Parallel()
	c := Start(t, WithMembers(3))
	client := c.Client(t)
	put(t, client, "k", "v")
	require.NoError(t, c.Stop())
	require.NoError(t, c.Member(0).Restart(), "without a quorum it does not wait for one")
	require.NoError(t, c.Member(0).Stop(), "of one that is not ready")
	for _, m := range c.Members() {
		require.NoError(t, m.Restart())
	}
	require.Equal(t, "v", get(t, client, "k"))
}

func TestMoveLeader(t *testing.T) {
	t.Parallel()
	c := Start(t, WithMembers(3))
	for _, m := range c.Members() {
		require.NoError(t, c.MoveLeader(m))
		require.Equal(t, m, c.Leader())
	}
	require.NoError(t, c.Member(0).Stop())
	require.Error(t, c.MoveLeader(c.Member(0)))
	require.NoError(t, c.Stop())
	require.ErrorIs(t, c.MoveLeader(c.Member(1)), ErrNoLeader)
}

func TestStopHandsTheLeadershipOver(t *testing.T) {
	t.Parallel()
	c := Start(t, WithMembers(3))
	leader := c.Leader()
	require.NoError(t, leader.Stop())
	require.NotNil(t, c.Leader(), "no election was needed")
	require.NotEqual(t, leader, c.Leader())
}

// Without the proxies before the peer ports nearly every stop takes 1 s.
func TestStopDoesNotWaitForThePeers(t *testing.T) {
	t.Parallel()
	c := Start(t, WithMembers(3))
	var stops time.Duration
	for _, m := range slices.Concat(c.Members(), c.Members()) {
		began := time.Now()
		require.NoError(t, m.Stop())
		stops += time.Since(began)
		require.NoError(t, m.Restart())
	}
	require.Less(t, stops, 3*time.Second)
}

func TestCloseRemovesTheDataAndIsFinal(t *testing.T) {
	t.Parallel()
	c, err := Run()
	require.NoError(t, err)
	require.DirExists(t, c.Member(0).DataDir())
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = os.Stat(c.Member(0).DataDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, c.Restart(), ErrClosed)
	require.ErrorIs(t, c.Member(0).Restart(), ErrClosed)
}

func TestConfigReachesEtcd(t *testing.T) {
	t.Parallel()
	c := Start(t, WithConfig(func(cfg *embed.Config) {
		cfg.MaxTxnOps = 1
		cfg.Name = "not this"
	}))
	client := c.Client(t)
	_, err := client.Txn(timeout(t, long)).Then(clientv3.OpPut("a", ""), clientv3.OpPut("b", "")).Commit()
	require.ErrorContains(t, err, "too many operations")
	members, err := client.MemberList(timeout(t, long))
	require.NoError(t, err)
	require.Equal(t, "m0", members.Members[0].Name)
}

func takenPort(t *testing.T) *port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &port{number: l.Addr().(*net.TCPAddr).Port, release: func() {}}
}

func TestAPortTakenBySomebodyElseIsTriedAgainWithAnother(t *testing.T) {
	t.Parallel()
	o, err := newOptions(nil)
	require.NoError(t, err)
	next := takenPort(t)
	c, err := run(o, func() (*port, error) {
		if p := next; p != nil {
			next = nil
			return p, nil
		}
		return newPort()
	})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestPortsTakenBySomebodyElseAreNotTriedForEver(t *testing.T) {
	t.Parallel()
	o, err := newOptions(nil)
	require.NoError(t, err)
	taken := takenPort(t)
	_, err = run(o, func() (*port, error) { return taken, nil })
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

func TestOptionsOutOfRange(t *testing.T) {
	t.Parallel()
	for _, opt := range []Option{WithMembers(0), WithMembers(8), WithElectionTimeout(time.Millisecond), WithElectionTimeout(time.Minute)} {
		_, err := Run(opt)
		require.ErrorContains(t, err, "want")
	}
}

func TestAFatalErrorOfEtcdDoesNotEndTheProcessSilently(t *testing.T) {
	t.Parallel()
	o, err := newOptions(nil)
	require.NoError(t, err)
	require.PanicsWithValue(t, "disk on fire", func() { o.logger.Fatal("disk on fire") })
}
