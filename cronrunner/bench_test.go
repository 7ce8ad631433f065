package cronrunner

import (
	"context"
	"encoding/json"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func TestMain(m *testing.M) {
	// Most of these tests wait for the next second of the clock, not for a core. -parallel overrides it.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const patience = 40 * time.Second

var prefix, keysOnly = clientv3.WithPrefix(), clientv3.WithKeysOnly()

// bench is an etcd and what was started on it.
type bench struct {
	t       *testing.T
	cluster *etcdtest.Cluster
	client  *clientv3.Client // for looking, not for the schedulers
	store   *state.Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return newBenchInLine(t)
}

// newBenchInLine is for tests with more than one.
func newBenchInLine(t *testing.T) *bench {
	t.Helper()
	cluster := etcdtest.Start(t)
	client := cluster.Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	return &bench{t: t, cluster: cluster, client: client, store: state.NewStore(client, keys, state.StoreConfig{})}
}

// events collects what a scheduler tells.
type events struct {
	mu  sync.Mutex
	all []Event
}

func (e *events) Observe(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) has(match func(Event) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.all, match)
}

type instance struct {
	*Scheduler
	t      *testing.T
	events *events
	stop   func() // drains, and waits
}

// start runs a scheduler with jobs until the test ends.
func (b *bench) start(cfg Config, jobs ...Job) *instance {
	b.t.Helper()
	return b.startOn(b.cluster.Client(b.t), cfg, jobs...)
}

func (b *bench) startOn(client *clientv3.Client, cfg Config, jobs ...Job) *instance {
	b.t.Helper()
	seen := &events{}
	cfg.Observer = seen
	cfg.LeaderTTL = orDefault(cfg.LeaderTTL, 2*time.Second)
	s, err := New(client, cfg)
	require.NoError(b.t, err)
	for _, j := range jobs {
		require.NoError(b.t, s.Register(j))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	i := &instance{Scheduler: s, t: b.t, events: seen}
	i.stop = func() { once.Do(func() { cancel(); require.NoError(b.t, <-done) }) }
	b.t.Cleanup(i.stop)
	return i
}

func (i *instance) waitLeading() {
	i.t.Helper()
	i.waitFor(func(ev Event) bool { _, ok := ev.(Elected); return ok })
}

func (i *instance) waitFor(match func(Event) bool) {
	i.t.Helper()
	require.Eventually(i.t, func() bool { return i.events.has(match) }, patience, 5*time.Millisecond)
}

// handOver makes the leader give way to another candidate, once there is one.
func (b *bench) handOver(from, to *instance) {
	b.t.Helper()
	b.waitCandidates(2)
	require.NoError(b.t, from.Elector().Resign(b.t.Context()))
	to.waitLeading()
}

func (b *bench) waitCandidates(n int64) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		resp, err := b.client.Get(b.t.Context(), b.store.Keys().Candidates(), clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == n
	}, patience, 5*time.Millisecond)
}

// runs is a job's whole history, oldest first.
func (b *bench) runs(job string) []state.Run {
	b.t.Helper()
	page, err := b.store.History(b.t.Context(), job, "", 1000)
	require.NoError(b.t, err)
	slices.Reverse(page.Runs)
	return page.Runs
}

func (b *bench) status(job string) state.JobStatus {
	b.t.Helper()
	def, err := b.store.Job(b.t.Context(), job)
	require.NoError(b.t, err)
	return def.View.Status
}

// waitRuns waits until the history of job satisfies ok, and returns it.
func (b *bench) waitRuns(job string, ok func([]state.Run) bool) []state.Run {
	b.t.Helper()
	var runs []state.Run
	require.Eventually(b.t, func() bool { runs = b.runs(job); return ok(runs) }, patience, 20*time.Millisecond)
	return runs
}

// passed returns when scheduled times have passed for so long.
func (b *bench) passed(d time.Duration) {
	b.t.Helper()
	until := time.Now().Add(d)
	require.Eventually(b.t, func() bool { return time.Now().After(until) }, patience, 10*time.Millisecond)
}

func count(runs []state.Run, status state.RunStatus) (n int) {
	for _, r := range runs {
		if r.Status == status {
			n++
		}
	}
	return n
}

func reached(n int, status state.RunStatus) func([]state.Run) bool {
	return func(runs []state.Run) bool { return count(runs, status) >= n }
}

// requireEachTimeOnce checks invariants I3 and I6 of an every-second job: from the first record to the
// last, each second is in exactly one record, all are final, and the counters say the same.
func (b *bench) requireEachTimeOnce(job string) {
	b.t.Helper()
	runs := b.runs(job)
	require.NotEmpty(b.t, runs)
	next := runs[0].ScheduledAt
	counted := map[state.RunStatus]int64{}
	for _, r := range runs {
		require.Equal(b.t, next, r.ScheduledAt, "run %s (%s) after a gap or twice", r.ID, r.Status)
		require.True(b.t, r.Status.Final(), "run %s is %s", r.ID, r.Status)
		next = r.Covers().Add(time.Second)
		require.Equal(b.t, int64(next.Sub(r.ScheduledAt)/time.Second), r.Times())
		if r.Attempt > 0 {
			counted[r.Status]++ // one run, however many times it stands for
		} else {
			counted[r.Status] += r.Times()
		}
	}
	st := b.status(job)
	require.Equal(b.t, runs[len(runs)-1].Covers(), st.Cursor)
	require.Equal(b.t, counted, nonZero(map[state.RunStatus]int64{
		state.Succeeded: st.SucceededTotal, state.Failed: st.FailedTotal, state.Skipped: st.SkippedTotal,
		state.Missed: st.MissedTotal, state.Canceled: st.CanceledTotal,
	}))
	require.Empty(b.t, st.Live)
	require.Empty(b.t, st.Queue)
}

func nonZero(m map[state.RunStatus]int64) map[state.RunStatus]int64 {
	for k, v := range m {
		if v == 0 {
			delete(m, k)
		}
	}
	return m
}

func quick(context.Context, *Run) error { return nil }

func secondly(name string, h Handler) Job {
	return Job{Name: name, Schedule: "* * * * * *", Handler: h, LockTTL: 3 * time.Second}
}

// putStatus writes a job's status as somebody might by hand.
func (b *bench) putStatus(job string, change func(*state.JobStatus)) {
	b.t.Helper()
	st := b.status(job)
	change(&st)
	value, err := json.Marshal(st)
	require.NoError(b.t, err)
	_, err = b.client.Put(b.t.Context(), b.store.Keys().Status(job), string(value))
	require.NoError(b.t, err)
}
