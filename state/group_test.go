package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// put is a mutation of a job that succeeds once.
func put(job, key string) Mutation {
	return Mutation{
		Job:  job,
		If:   []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
		Then: []clientv3.Op{clientv3.OpPut(key, job)},
		Else: []clientv3.Op{clientv3.OpGet(key)},
	}
}

// gate is a KV that lets no transaction through before it is opened.
type gate struct {
	clientv3.KV
	open chan struct{}
}

func (g gate) Txn(ctx context.Context) clientv3.Txn {
	<-g.open
	return g.KV.Txn(ctx)
}

// batches commits all mutations at once while the gate is shut, then opens it, and returns how many
// mutations each transaction carried.
func batches(t *testing.T, f *fixture, ms []Mutation) (sizes []int, results []Result, errs []error) {
	t.Helper()
	var mu sync.Mutex
	shut := gate{KV: f.client, open: make(chan struct{})}
	g := &group{kv: shut, timeout: 5 * time.Second, hook: func(_ time.Duration, n int, _ error) {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, n)
	}}
	results, errs = make([]Result, len(ms)), make([]error, len(ms))
	var calls sync.WaitGroup
	for i, m := range ms {
		calls.Go(func() { results[i], errs[i] = g.Commit(t.Context(), m) })
	}
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.sending == min(maxInFlight, len(ms)) && len(g.queue) >= len(ms)-maxInFlight*maxPacked
	}, 10*time.Second, time.Millisecond)
	close(shut.open)
	calls.Wait()
	require.Zero(t, g.sending)
	require.Empty(t, g.queue)
	return sizes, results, errs
}

func TestGroupPacksWhatWaits(t *testing.T) {
	f := setup(t)
	ms := make([]Mutation, 500)
	for i := range ms {
		ms[i] = put(fmt.Sprint("job-", i), fmt.Sprint("key-", i))
	}
	sizes, results, errs := batches(t, f, ms)
	total := 0
	for _, n := range sizes {
		require.LessOrEqual(t, n, maxPacked)
		total += n
	}
	require.Equal(t, len(ms), total)
	require.LessOrEqual(t, len(sizes), 20, "%v", sizes)
	for i := range ms {
		require.NoError(t, errs[i])
		require.True(t, results[i].Succeeded)
		require.Positive(t, results[i].Revision)
		require.Equal(t, fmt.Sprint("job-", i), f.get(fmt.Sprint("key-", i)))
	}
}

func TestGroupOneConflictFailsAlone(t *testing.T) {
	f := setup(t)
	_, err := f.client.Put(t.Context(), "key-3", "somebody")
	require.NoError(t, err)
	ms := make([]Mutation, 50)
	for i := range ms {
		ms[i] = put(fmt.Sprint("job-", i), fmt.Sprint("key-", i))
	}
	_, results, errs := batches(t, f, ms)
	for i := range ms {
		require.NoError(t, errs[i])
		require.Equal(t, i != 3, results[i].Succeeded)
	}
	require.Equal(t, "somebody", string(firstKVs(results[3])[0].Value), "and reads what stands there")
}

// etcd refuses a transaction that puts a key twice; two mutations of a job would.
func TestGroupOneMutationOfAJobAtATime(t *testing.T) {
	f := setup(t)
	ms := make([]Mutation, 60)
	for i := range ms {
		ms[i] = put("same", "same-key")
	}
	_, results, errs := batches(t, f, ms)
	won := 0
	for i := range ms {
		require.NoError(t, errs[i])
		if results[i].Succeeded {
			won++
		}
	}
	require.Equal(t, 1, won)
}

// A lease that is gone makes etcd refuse the whole transaction: the others must not suffer.
func TestGroupALostLeaseFailsAlone(t *testing.T) {
	f := setup(t)
	ms := make([]Mutation, 20)
	for i := range ms {
		ms[i] = put(fmt.Sprint("job-", i), fmt.Sprint("key-", i))
	}
	ms[7].Then = []clientv3.Op{clientv3.OpPut("key-7", "", clientv3.WithLease(4711))}
	_, results, errs := batches(t, f, ms)
	for i := range ms {
		if i == 7 {
			require.True(t, isLeaseNotFound(errs[i]), "%v", errs[i])
			continue
		}
		require.NoError(t, errs[i])
		require.True(t, results[i].Succeeded)
	}
}

func TestGroupKeepsWithinTheRequestLimit(t *testing.T) {
	f := setup(t)
	ms := make([]Mutation, 12)
	for i := range ms {
		ms[i] = put(fmt.Sprint("job-", i), fmt.Sprint("key-", i))
		ms[i].Then = []clientv3.Op{clientv3.OpPut(fmt.Sprint("key-", i), string(make([]byte, 400<<10)))}
	}
	sizes, _, errs := batches(t, f, ms)
	require.NoError(t, errors.Join(errs...))
	for _, n := range sizes {
		require.LessOrEqual(t, n, 2)
	}
}

// Callers that give up while they wait are neither sent nor do they keep a place.
func TestGroupCallersThatGiveUp(t *testing.T) {
	f := setup(t)
	shut := gate{KV: f.client, open: make(chan struct{})}
	g := &group{kv: shut, timeout: 5 * time.Second, hook: func(time.Duration, int, error) {}}
	var senders, leavers sync.WaitGroup
	for i := range maxInFlight { // one after the other, or one of them would send for two
		senders.Go(func() { _, _ = g.Commit(t.Context(), put(fmt.Sprint("s", i), fmt.Sprint("s", i))) })
		require.Eventually(t, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.sending == i+1 && len(g.queue) == 0
		}, 10*time.Second, time.Millisecond)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	errs := make([]error, 20)
	for i := range errs {
		leavers.Go(func() {
			_, errs[i] = g.Commit(ctx, put(fmt.Sprint("l", i), fmt.Sprint("l", i)))
		})
	}
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.queue) == 20
	}, 10*time.Second, time.Millisecond)
	cancel(enough)
	leavers.Wait()
	close(shut.open)
	senders.Wait()
	require.Zero(t, g.sending)
	for i := range errs {
		require.ErrorIs(t, errs[i], enough)
		require.Empty(t, f.get(fmt.Sprint("l", i)))
	}
}

// A caller whose context ends is not kept by what it sends for itself and others: a handler that writes a checkpoint has
// to stop in time, above all when etcd is silent.
func TestGroupASenderThatGivesUp(t *testing.T) {
	f := setup(t)
	shut := gate{KV: f.client, open: make(chan struct{})}
	g := &group{kv: shut, timeout: 5 * time.Second, hook: func(time.Duration, int, error) {}}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err := g.Commit(ctx, put("job", "key"))
	require.ErrorIs(t, err, enough)

	time.AfterFunc(10*time.Millisecond, func() { close(shut.open) })
	g.wait()
	require.Equal(t, "job", f.get("key"), "what was sent goes on")
	requireIdle(t, g)
}

func requireIdle(t *testing.T, g *group) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.sending == 0 && len(g.queue) == 0
	}, 10*time.Second, time.Millisecond, "a place is lost")
}

// Everything at once: callers of few jobs, some of which give up at any moment. No place is lost.
func TestGroupUnderStress(t *testing.T) {
	f := setup(t)
	g := &group{kv: f.client, timeout: 5 * time.Second, hook: func(time.Duration, int, error) {}}
	var won, tried atomic.Int64
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			for n := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*n%40+1)*time.Millisecond)
				res, err := g.Commit(ctx, put(fmt.Sprint("job-", i%30), fmt.Sprint("key-", i, "-", n)))
				cancel()
				tried.Add(1)
				if err == nil && res.Succeeded {
					won.Add(1)
				}
			}
		})
	}
	calls.Wait()
	requireIdle(t, g)
	resp, err := f.client.Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.GreaterOrEqual(t, resp.Count, won.Load(), "what was answered was done")
	require.LessOrEqual(t, resp.Count, tried.Load())
}
