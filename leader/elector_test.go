package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// instance is an elector that runs, and what it is told.
type instance struct {
	*Elector
	t      *testing.T
	client *clientv3.Client
	began  chan reigning
	stop   func()
	done   chan struct{}
}

// reigning is a call of lead.
type reigning struct {
	ctx  context.Context
	term Term
	quit chan error // sent to, lead returns it
}

func keysOf(t *testing.T) state.Keys {
	t.Helper()
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	return keys
}

// start runs an elector until the test ends, with a heart that beats unless deaf.
func start(t *testing.T, client *clientv3.Client, id string, ttl time.Duration) *instance {
	t.Helper()
	e, err := New(client, Config{Keys: keysOf(t), Self: state.Instance{ID: id, Host: "h", PID: 1}, TTL: ttl})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	i := &instance{Elector: e, t: t, client: client, began: make(chan reigning, 100), done: make(chan struct{})}
	go func() {
		defer close(i.done)
		_ = e.Run(ctx, i.lead)
	}()
	var once sync.Once
	i.stop = func() { once.Do(func() { cancel(); <-i.done }) }
	t.Cleanup(i.stop)
	return i
}

func (i *instance) lead(ctx context.Context, term Term) error {
	r := reigning{ctx: ctx, term: term, quit: make(chan error)}
	i.began <- r
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			term.Beat()
		case err := <-r.quit:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (i *instance) waitLeading() reigning {
	i.t.Helper()
	select {
	case r := <-i.began:
		return r
	case <-time.After(patience):
		require.FailNow(i.t, "does not lead")
		return reigning{}
	}
}

func waitEnded(t *testing.T, r reigning, cause error) {
	t.Helper()
	select {
	case <-r.ctx.Done():
		require.ErrorIs(t, context.Cause(r.ctx), cause)
	case <-time.After(patience):
		require.FailNow(t, "the term does not end")
	}
}

func TestOneLeadsAndTheNextFollows(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", DefaultTTL)
	first := a.waitLeading()
	b := start(t, cluster.Client(t), "b", DefaultTTL)

	info, err := a.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a", info.Instance)
	require.Equal(t, first.term.Revision, info.Term)
	require.False(t, info.ElectedAt.IsZero())
	term, ok := a.Leading()
	require.True(t, ok)
	require.Equal(t, info.Term, term.Revision)

	a.stop()
	waitEnded(t, first, ErrResigned)
	second := b.waitLeading()
	require.Greater(t, second.term.Revision, first.term.Revision)
	info, err = b.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, "b", info.Instance)
}

func TestResignHandsOverAndStaysACandidate(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", DefaultTTL)
	r := a.waitLeading()
	b := start(t, cluster.Client(t), "b", DefaultTTL)
	waitCandidates(t, a.client, 2)

	require.NoError(t, a.Resign(t.Context()))
	waitEnded(t, r, ErrResigned)
	b.waitLeading()
	require.NoError(t, a.Resign(t.Context()), "who does not lead has nothing to resign")
	waitCandidates(t, a.client, 2)
	require.NoError(t, b.Resign(t.Context()))
	a.waitLeading()
}

func waitCandidates(t *testing.T, client *clientv3.Client, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := client.Get(t.Context(), keysOf(t).Candidates(), clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == int64(n)
	}, patience, 5*time.Millisecond)
}

func TestLeadThatReturnsResigns(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", DefaultTTL)
	first := a.waitLeading()
	first.quit <- errors.New("boom")
	second := a.waitLeading()
	require.Greater(t, second.term.Revision, first.term.Revision)
}

func TestKeyDeletedFromOutsideEndsTheTerm(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", 30*time.Second)
	first := a.waitLeading()
	_, err := a.client.Delete(t.Context(), first.term.Key)
	require.NoError(t, err)
	waitEnded(t, first, ErrLost)
	second := a.waitLeading()
	require.Greater(t, second.term.Revision, first.term.Revision)
}

func TestLeaseRevokedFromOutsideEndsTheTerm(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", 30*time.Second)
	first := a.waitLeading()
	revokeAll(t, a.client)
	waitEnded(t, first, ErrLost)
	a.waitLeading()
}

func revokeAll(t *testing.T, client *clientv3.Client) {
	t.Helper()
	leases, err := client.Leases(t.Context())
	require.NoError(t, err)
	for _, l := range leases.Leases {
		_, err := client.Revoke(t.Context(), l.ID)
		require.NoError(t, err)
	}
}

// E01: a candidate whose own lease dies while it waits is not elected when the leader goes, in whichever
// order the two happen.
func TestCandidateWhoseLeaseDiesIsNoPhantom(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", 30*time.Second)
	r := a.waitLeading()
	leaderKey, err := a.client.Get(t.Context(), r.term.Key)
	require.NoError(t, err)
	leaderLease := clientv3.LeaseID(leaderKey.Kvs[0].Lease)
	b := start(t, cluster.Client(t), "b", 30*time.Second)
	waitCandidates(t, a.client, 2)
	leases, err := a.client.Leases(t.Context())
	require.NoError(t, err)
	for _, l := range leases.Leases { // the candidate's first, then the leader's
		if l.ID != leaderLease {
			_, err := a.client.Revoke(t.Context(), l.ID)
			require.NoError(t, err)
		}
	}
	a.stop()
	second := b.waitLeading()
	resp, err := b.client.Get(t.Context(), second.term.Key)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1, "a leader has a key")
	require.Equal(t, second.term.Revision, resp.Kvs[0].CreateRevision)
}

func TestEtcdNotThereAtTheStart(t *testing.T) {
	cluster := etcdtest.Start(t)
	client := cluster.Client(t)
	require.NoError(t, cluster.Stop())
	a := start(t, client, "a", 2*time.Second)
	require.NoError(t, cluster.Restart())
	a.waitLeading()
}

// An outage longer than the TTL: the term ends in time, and when etcd is back the same lease leads
// again under the same term, with no election.
func TestEtcdGoneForLongerThanTheTTL(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", 2*time.Second)
	first := a.waitLeading()
	require.NoError(t, cluster.Stop())
	waitEnded(t, first, ErrLost)
	require.NoError(t, cluster.Restart())
	second := a.waitLeading()
	require.Equal(t, first.term.Term, second.term.Term, "the same term goes on")
	require.NotSame(t, first.ctx, second.ctx)
}

// A healthy keepalive over a dead loop is the worst of failures.
func TestALeaderWhoseHeartStopsIsReplaced(t *testing.T) {
	cluster := etcdtest.Start(t)
	e, err := New(cluster.Client(t), Config{Keys: keysOf(t), Self: state.Instance{ID: "dead"}, TTL: 2 * time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	leads, cause, release := make(chan struct{}, 10), make(chan error, 10), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, _ Term) error {
			leads <- struct{}{}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			<-release // it does not even return
			return nil
		})
	}()
	defer func() { cancel(); close(release); <-done }()
	<-leads
	b := start(t, cluster.Client(t), "b", 2*time.Second)
	b.waitLeading()
	require.ErrorIs(t, <-cause, ErrStalled)
}

func TestAKeyWithoutALeaseIsNamed(t *testing.T) {
	cluster := etcdtest.Start(t)
	client := cluster.Client(t)
	key := keysOf(t).Candidates() + "restored"
	_, err := client.Put(t.Context(), key, "{}")
	require.NoError(t, err)
	a := start(t, client, "a", 2*time.Second)
	require.Eventually(t, func() bool { return a.Blocked() == key }, patience, 20*time.Millisecond)
	_, err = client.Delete(t.Context(), key)
	require.NoError(t, err)
	a.waitLeading()
	require.Empty(t, a.Blocked())
}

func TestObserveTellsOfNobodyToo(t *testing.T) {
	cluster := etcdtest.Start(t)
	a := start(t, cluster.Client(t), "a", DefaultTTL)
	first := a.waitLeading()
	watcher, err := New(cluster.Client(t), Config{Keys: keysOf(t), Self: state.Instance{ID: "w"}})
	require.NoError(t, err)
	saw := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for info, err := range watcher.Observe(ctx) {
			saw <- fmt.Sprint(info.Instance, err)
		}
	}()
	defer func() { cancel(); <-done }()
	require.Equal(t, "a<nil>", <-saw)
	a.stop()
	waitEnded(t, first, ErrResigned)
	require.Equal(t, fmt.Sprint(ErrNoLeader), <-saw)
	b := start(t, cluster.Client(t), "b", DefaultTTL)
	b.waitLeading()
	require.Contains(t, <-saw, "b")
}

func TestNothingIsLeftBehind(t *testing.T) {
	cluster := etcdtest.Start(t)
	client := cluster.Client(t)
	for i := range 5 {
		a := start(t, cluster.Client(t), fmt.Sprint("a", i), DefaultTTL)
		a.waitLeading()
		b := start(t, cluster.Client(t), fmt.Sprint("b", i), DefaultTTL)
		waitCandidates(t, client, 2)
		b.stop()
		a.stop()
	}
	leases, err := client.Leases(t.Context())
	require.NoError(t, err)
	require.Empty(t, leases.Leases)
	resp, err := client.Get(t.Context(), keysOf(t).Root(), clientv3.WithPrefix())
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
}

func TestConfigIsChecked(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "Keys is required"},
		{Config{Keys: keysOf(t)}, "Self.ID is required"},
		{Config{Keys: keysOf(t), Self: state.Instance{ID: "a"}, TTL: time.Second}, "too short"},
		{Config{Keys: keysOf(t), Self: state.Instance{ID: "a"}, TTL: 2500 * time.Millisecond}, "whole seconds"},
	} {
		_, err := New(nil, tc.cfg)
		require.ErrorContains(t, err, tc.want)
	}
}
