package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// mirror follows a prefix into a map and says each time that it has changed.
func mirror(t *testing.T, s *Store, prefix string) (now func() map[string]string, lists func() int) {
	t.Helper()
	type snapshot struct {
		keys  map[string]string
		lists int
	}
	changes := make(chan snapshot, 10_000)
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() {
		cur := snapshot{keys: map[string]string{}}
		tell := func() {
			changes <- snapshot{keys: maps.Clone(cur.keys), lists: cur.lists}
		}
		done <- s.Follow(ctx, prefix, Events{
			List: func(kvs []*mvccpb.KeyValue) {
				cur.keys = map[string]string{}
				for _, kv := range kvs {
					cur.keys[string(kv.Key)] = string(kv.Value)
				}
				cur.lists++
				tell()
			},
			Event: func(ev *clientv3.Event) {
				if ev.Type == mvccpb.Event_DELETE {
					delete(cur.keys, string(ev.Kv.Key))
				} else {
					cur.keys[string(ev.Kv.Key)] = string(ev.Kv.Value)
				}
				tell()
			},
		})
	}()
	enough := errors.New("enough")
	t.Cleanup(func() { cancel(enough); require.ErrorIs(t, <-done, enough) })
	var last snapshot
	drain := func() {
		for {
			select {
			case last = <-changes:
			default:
				return
			}
		}
	}
	return func() map[string]string { drain(); return last.keys }, func() int { drain(); return last.lists }
}

func TestFollowSurvivesCompactionDuringACut(t *testing.T) {
	cluster := etcdtest.Start(t)
	direct := cluster.Client(t)
	client, proxies := cluster.Proxied(t)
	keys, err := NewKeys("", "")
	require.NoError(t, err)
	var again atomic.Int64
	s := NewStore(client, keys, StoreConfig{Timeout: time.Second, RetryHook: func(operation string, err error) {
		if operation == "watch" && err != nil {
			again.Add(1)
		}
	}})
	prefix := keys.Controls()
	_, err = direct.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	now, lists := mirror(t, s, prefix)
	require.Eventually(t, func() bool { return len(now()) == 1 }, 10*time.Second, 10*time.Millisecond)

	proxies[0].Cut()
	var rev int64
	for i := range 1000 {
		resp, err := direct.Put(t.Context(), prefix+"b", fmt.Sprint(i))
		require.NoError(t, err)
		rev = resp.Header.Revision
	}
	_, err = direct.Delete(t.Context(), prefix+"a")
	require.NoError(t, err)
	_, err = direct.Compact(t.Context(), rev+1, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	proxies[0].Heal()

	require.Eventually(t, func() bool {
		keys := now()
		return len(keys) == 1 && keys[prefix+"b"] == "999"
	}, 20*time.Second, 10*time.Millisecond)
	require.LessOrEqual(t, lists(), 30, "no hot loop")
	require.NotZero(t, again.Load(), "and it is told")
	_, err = direct.Put(t.Context(), prefix+"c", "1")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(now()) == 2 }, 10*time.Second, 10*time.Millisecond)
}
