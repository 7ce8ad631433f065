package state

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// between is a KV before each of whose reads something happens.
type between struct {
	clientv3.KV

	happen func()
}

func (b *between) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	b.happen()
	return b.KV.Get(ctx, key, opts...)
}

// A list of several pages is of one revision, and that is the one from which a watch goes on: a change between two
// pages is in neither of them, and must not be lost to the watch either.
func TestListIsOfOneRevision(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const total = 2*pageSize + 10
	prefix := f.keys.Root() + "many/"
	for i := range total {
		_, err := f.client.Put(t.Context(), fmt.Sprintf("%s%05d", prefix, i), "old")
		require.NoError(t, err)
	}
	var reads atomic.Int64
	kv := f.client.KV
	f.client.KV = &between{KV: kv, happen: func() {
		n := reads.Add(1)
		_, err := kv.Put(t.Context(), fmt.Sprintf("%s%05d", prefix, total-1-int(n)), "new")
		require.NoError(t, err)
	}}
	kvs, rev, err := f.list(t.Context(), prefix)
	require.NoError(t, err)
	require.Len(t, kvs, total)
	require.Equal(t, int64(3), reads.Load())
	for _, kv := range kvs {
		require.LessOrEqual(t, kv.ModRevision, rev, "%s is newer than the list", kv.Key)
	}
	require.Equal(t, "new", string(kvs[total-2].Value))
	require.Equal(t, "old", string(kvs[total-3].Value), "it was changed between two pages")
}
