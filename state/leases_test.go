package state

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeasesOnePerTTL(t *testing.T) {
	f := setup(t)
	ls := NewLeases(f.Store, NewLessor(f.client))
	defer ls.Close()
	require.Same(t, ls.For(30*time.Second), ls.For(30*time.Second))
	require.NotSame(t, ls.For(30*time.Second), ls.For(10*time.Second))
}

// A lock's lease revoked from outside: its users hear of it at once, not with the next renewal, which
// is ten seconds away here.
func TestLeasesHearOfARevocationAtOnce(t *testing.T) {
	f := setup(t)
	ls := NewLeases(f.Store, NewLessor(f.client))
	defer ls.Close()
	lease := ls.For(30 * time.Second)
	g, err := lease.Acquire(t.Context(), time.Second)
	require.NoError(t, err)
	held, release := g.Hold(t.Context(), time.Second)
	defer release()
	require.Eventually(t, func() bool { return f.get(f.keys.Sentinel(g.ID)) != "" }, 5*time.Second, 5*time.Millisecond)

	start := time.Now()
	_, err = f.client.Revoke(t.Context(), g.ID)
	require.NoError(t, err)
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), ErrLeaseLost)
	require.Less(t, time.Since(start), 5*time.Second)

	again, err := lease.Acquire(t.Context(), time.Second)
	require.NoError(t, err)
	require.NotEqual(t, g.ID, again.ID)
}

func TestLeasesSentinelDeletedByHandLosesNothing(t *testing.T) {
	f := setup(t)
	ls := NewLeases(f.Store, NewLessor(f.client))
	defer ls.Close()
	g, err := ls.For(30*time.Second).Acquire(t.Context(), time.Second)
	require.NoError(t, err)
	held, release := g.Hold(t.Context(), time.Second)
	defer release()
	key := f.keys.Sentinel(g.ID)
	require.Eventually(t, func() bool { return f.get(key) != "" }, 5*time.Second, 5*time.Millisecond)
	_, err = f.client.Delete(t.Context(), key)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.get(key) != "" }, 5*time.Second, 5*time.Millisecond, "put again")
	require.NoError(t, held.Err())
}

func TestLeasesCloseLeavesNone(t *testing.T) {
	f := setup(t)
	ls := NewLeases(f.Store, NewLessor(f.client))
	for _, ttl := range []time.Duration{10 * time.Second, 30 * time.Second} {
		_, err := ls.For(ttl).Acquire(t.Context(), 0)
		require.NoError(t, err)
	}
	ls.Close()
	left, err := f.client.Leases(t.Context())
	require.NoError(t, err)
	require.Empty(t, left.Leases)
}

// The client's own KeepAliveOnce sends again without a pause while etcd cannot be reached.
func TestLessorDoesNotSpinWithoutEtcd(t *testing.T) {
	f := setup(t)
	l := NewLessor(f.client)
	id := f.lease(60)
	resp, err := l.KeepAliveOnce(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, int64(60), resp.TTL)
}
