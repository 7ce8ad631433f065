package etcdtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	long = 15 * time.Second // for what has to happen
	poll = 20 * time.Millisecond
	// short is for what must not happen: long enough for a request on a machine with nothing in its way.
	short = 300 * time.Millisecond
)

func timeout(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

func put(tb testing.TB, client *clientv3.Client, key, value string) {
	tb.Helper()
	_, err := client.Put(timeout(tb, long), key, value)
	require.NoError(tb, err)
}

func get(tb testing.TB, client *clientv3.Client, key string) string {
	tb.Helper()
	resp, err := client.Get(timeout(tb, long), key)
	require.NoError(tb, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

// putUntilDone is for a cluster that is about to serve: a write is not retried by the client.
func putUntilDone(tb testing.TB, client *clientv3.Client, key, value string) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		_, err := client.Put(timeout(tb, 2*time.Second), key, value)
		return err == nil
	}, long, poll)
}
