package state

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// tailed is a call of a Tailing: a reset, or the changes of a revision.
type tailed struct {
	rev    int64
	reset  bool
	values []string
}

// tailing follows a prefix after a revision until the test ends.
func (f *fixture) tailing(prefix string, after, maxBehind int64) <-chan tailed {
	f.t.Helper()
	calls := make(chan tailed, 10_000)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- f.Tail(ctx, prefix, after, maxBehind, Tailing{
			Reset: func(rev int64) { calls <- tailed{rev: rev, reset: true} },
			Changed: func(rev int64, events []*clientv3.Event) {
				c := tailed{rev: rev}
				for _, ev := range events {
					c.values = append(c.values, string(ev.Kv.Value))
				}
				calls <- c
			},
		})
	}()
	enough := errors.New("enough")
	f.t.Cleanup(func() { cancel(enough); require.ErrorIs(f.t, <-done, enough) })
	return calls
}

func (f *fixture) put(key, value string) int64 {
	f.t.Helper()
	resp, err := f.client.Put(f.t.Context(), key, value)
	require.NoError(f.t, err)
	return resp.Header.Revision
}

// A tail tells every change after the revision that it begins at, the changes of one revision together.
func TestTail(t *testing.T) {
	f := setup(t)
	prefix := f.keys.Controls()
	first := f.put(prefix+"a", "1")
	f.put("/elsewhere", "x")
	both, err := f.client.Txn(t.Context()).Then(clientv3.OpPut(prefix+"a", "2"), clientv3.OpPut(prefix+"b", "3")).Commit()
	require.NoError(t, err)

	calls := f.tailing(prefix, first, 100)
	require.Equal(t, tailed{rev: both.Header.Revision, values: []string{"2", "3"}}, <-calls)
	now := f.tailing(prefix, 0, 100)
	require.Equal(t, tailed{rev: both.Header.Revision, reset: true}, <-now)
	next := f.put(prefix+"c", "4")
	require.Equal(t, tailed{rev: next, values: []string{"4"}}, <-calls)
	require.Equal(t, tailed{rev: next, values: []string{"4"}}, <-now)
}

// Where it cannot go on, it says so and goes on from now: what is compacted, too long ago, or not there.
func TestTail_Reset(t *testing.T) {
	f := setup(t)
	prefix := f.keys.Controls()
	first := f.put(prefix+"a", "1")
	var last int64
	for range 20 {
		last = f.put(prefix+"a", "2")
	}
	require.Equal(t, tailed{rev: last, reset: true}, <-f.tailing(prefix, first, 10), "too long ago")
	require.Equal(t, tailed{rev: last, reset: true}, <-f.tailing(prefix, last+1, 10), "not there")
	_, err := f.client.Compact(t.Context(), last)
	require.NoError(t, err)
	calls := f.tailing(prefix, first, 1000)
	require.Equal(t, tailed{rev: last, reset: true}, <-calls, "compacted")
	next := f.put(prefix+"a", "3")
	require.Equal(t, tailed{rev: next, values: []string{"3"}}, <-calls)
}

// A watch that is lost, since etcd is started anew, goes on where it was.
func TestTail_Lost(t *testing.T) {
	cluster := etcdtest.Start(t)
	keys, err := NewKeys("", "")
	require.NoError(t, err)
	f := &fixture{t: t}
	f.Store = NewStore(cluster.Client(t), keys, StoreConfig{})
	calls := f.tailing(keys.Controls(), 0, 1000)
	require.True(t, (<-calls).reset)
	first := f.put(keys.Control("a"), "1")
	require.Equal(t, tailed{rev: first, values: []string{"1"}}, <-calls)
	require.NoError(t, cluster.Stop())
	require.NoError(t, cluster.Restart())
	second := f.put(keys.Control("a"), "2")
	require.Equal(t, tailed{rev: second, values: []string{"2"}}, <-calls)
}
