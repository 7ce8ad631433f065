package failover

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// 1,000 requests of 50 clients while leaders are killed: 1,000 records, each request acted on exactly once.
func TestEachRequestIsActedOnOnceWhileLeadersAreKilled(t *testing.T) {
	const clients, each = 50, 20
	b := newBench(t, `
jobs:
  asked:
    schedule: "0 0 1 1 *"
    shell: 'echo "$ETCDCRON_RUN_ID" >> asked'
    overlap: {policy: queue, limit: 1000}
    lock_ttl: 5s
`)
	for i := range 4 {
		b.serve(fmt.Sprintf("i%d", i))
	}
	p, info := b.leader(0)
	b.eventually("the job is not there", func() bool { _, err := b.store.Job(t.Context(), "asked"); return err == nil })

	var wg sync.WaitGroup
	asked := make(chan string, clients*each)
	for range clients {
		client, err := clientv3.New(clientv3.Config{Endpoints: b.cluster.Endpoints(), DialTimeout: patience})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		store := state.NewStore(client, b.keys, state.StoreConfig{})
		wg.Go(func() {
			for range each {
				r, err := store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: "asked"})
				if err != nil {
					t.Error(err)
					return
				}
				asked <- r.ID
				time.Sleep(500 * time.Millisecond) // so that it takes as long as the kills
			}
		})
	}
	for range 3 {
		b.waitSucceeded("asked", 20)
		p.signal(syscall.SIGKILL)
		<-p.done
		p, info = b.leader(info.Term)
	}
	wg.Wait()
	close(asked)

	b.eventually("not all requests are acted on", func() bool {
		left, err := b.store.Requests(t.Context())
		def, jobErr := b.store.Job(t.Context(), "asked")
		st := def.View.Status
		return err == nil && jobErr == nil && len(left)+st.Running+st.Pending == 0
	})
	b.stopAll()
	lines := map[string]int{}
	for _, id := range b.lines("asked") {
		lines[id]++
	}
	runs := b.history("asked")
	require.Len(t, runs, clients*each)
	records := map[string]state.Run{}
	resumed := 0
	for _, r := range runs {
		records[r.ID] = r
		require.Equal(t, state.Succeeded, r.Status, "%s: %s %s", r.ID, r.Reason, r.Error)
		require.LessOrEqual(t, lines[r.ID], r.Attempt, "no more often than it was attempted")
		require.Positive(t, lines[r.ID])
		resumed += r.Attempt - 1
	}
	for id := range asked {
		require.Contains(t, records, id)
		delete(records, id)
	}
	require.Empty(t, records, "each request has its record, and each record its request")
	require.LessOrEqual(t, resumed, 3, "what a kill cut off")
	t.Logf("%d requests, %d records, %d resumed after a kill", clients*each, len(runs), resumed)
	b.requireNothingLeft()
}
