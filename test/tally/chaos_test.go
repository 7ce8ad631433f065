package tally_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
	"github.com/etcdcron/etcdcron/test/tally"
)

var (
	chaosTime = flag.Duration("chaos", 40*time.Second, "how long the chaos lasts")
	seed      = flag.Uint64("seed", 0, "of the chaos; 0 draws one")
)

const (
	seats    = 3
	patience = 90 * time.Second // after the last fault
	by       = "chaos"
)

// Everything that /metrics, the API and describe say of a job is what its records say, after a time in which leaders resign and are
// killed, connections are cut and fall silent, etcd restarts, and runs fail, panic, are retried, replaced, paused,
// triggered and canceled.
func TestWhatIsShownIsWhatTheRecordsSay(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	for i := range seats {
		c.sit(i)
	}
	end := time.NewTimer(time.Until(c.end))
	defer end.Stop()
	faults, wishes := time.NewTicker(1500*time.Millisecond), time.NewTicker(250*time.Millisecond)
	defer faults.Stop()
	defer wishes.Stop()
	for lasts := true; lasts; {
		select {
		case <-faults.C:
			c.fault()
		case <-wishes.C:
			c.wish()
		case <-end.C:
			lasts = false
		}
	}
	c.calm()
	c.compare()
}

// chaos is three schedulers on one etcd, and all that have had their places before.
type chaos struct {
	t       *testing.T
	rand    *rand.Rand
	cluster *etcdtest.Cluster
	client  *clientv3.Client // in nobody's way
	keys    state.Keys
	store   *state.Store
	end     time.Time // no scheduled times after that
	jobs    []string

	places [seats]*instance
	all    []*instance
	proxy  [seats]*etcdtest.Proxy
}

// instance is one life of a scheduler.
type instance struct {
	*cronrunner.Scheduler

	registry *prometheus.Registry
	seen     *seen
	stop     context.CancelFunc
	done     chan error
	killed   bool // it may have written what it has had no answer to
}

// seen is an observer that passes on, and notes which records it was told of.
type seen struct {
	*metrics.Metrics

	mu   sync.Mutex
	ends map[string]int // by job/run
}

func (s *seen) Observe(ev cronrunner.Event) {
	if recorded, ok := ev.(cronrunner.Recorded); ok {
		s.mu.Lock()
		s.ends[recorded.Run.Job+"/"+recorded.Run.ID]++
		s.mu.Unlock()
	}
	s.Metrics.Observe(ev)
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed=%d", *seed)
	cluster := etcdtest.Start(t)
	c := &chaos{t: t, rand: rand.New(rand.NewPCG(*seed, 0)), cluster: cluster, client: cluster.Client(t)}
	var err error
	c.keys, err = state.NewKeys("", "")
	require.NoError(t, err)
	c.store = state.NewStore(c.client, c.keys, state.StoreConfig{})
	c.end = time.Now().Add(*chaosTime).Truncate(time.Second)
	for i := range c.proxy {
		c.proxy[i] = etcdtest.NewProxy(t, cluster.Endpoints()[0])
	}
	for _, j := range c.definitions() {
		c.jobs = append(c.jobs, j.Name)
	}
	return c
}

// definitions are jobs of every policy.
func (c *chaos) definitions() []cronrunner.Job {
	retry := cronrunner.Retry{MaxAttempts: 3, Initial: 100 * time.Millisecond, Max: time.Second}
	jobs := []cronrunner.Job{
		{Name: "skip"},
		{Name: "skip-none-fail", CatchUp: cronrunner.CatchUp{Policy: cronrunner.None}, Recovery: cronrunner.Recovery{Policy: cronrunner.Fail}},
		{Name: "skip-all-retry", CatchUp: cronrunner.CatchUp{Policy: cronrunner.All, Limit: 3}, Retry: retry},
		{Name: "queue", Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 3}},
		{Name: "queue-all-retry", Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 5}, CatchUp: cronrunner.CatchUp{Policy: cronrunner.All}, Retry: retry},
		{Name: "coalesce", Overlap: cronrunner.Overlap{Policy: cronrunner.Coalesce}},
		{Name: "replace", Overlap: cronrunner.Overlap{Policy: cronrunner.Replace}},
		{Name: "replace-retry", Overlap: cronrunner.Overlap{Policy: cronrunner.Replace}, Retry: retry},
		{Name: "allow", Overlap: cronrunner.Overlap{Policy: cronrunner.Allow, Limit: 3}},
		{Name: "allow-fail", Overlap: cronrunner.Overlap{Policy: cronrunner.Allow, Limit: 2}, Recovery: cronrunner.Recovery{Policy: cronrunner.Fail}},
		{Name: "few", MaxRuns: 15},
		{Name: "jitter", Jitter: 3 * time.Second},
	}
	for i := range jobs {
		jobs[i].Schedule, jobs[i].Handler, jobs[i].LockTTL, jobs[i].End = "* * * * * *", work, cronrunner.MinLockTTL, c.end
	}
	return jobs
}

// work takes up to 2 s and ends in every way.
func work(ctx context.Context, run *cronrunner.Run) error {
	select {
	case <-time.After(rand.N(2 * time.Second)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch rand.N(10) {
	case 0, 1:
		return errors.New("no luck")
	case 2:
		return cronrunner.Permanent(errors.New("never any luck"))
	case 3:
		panic("at " + run.ID())
	}
	return nil
}

// sit starts a scheduler at a place.
func (c *chaos) sit(place int) {
	c.t.Helper()
	client, err := etcdtest.NewClient(c.proxy[place].Endpoint())
	require.NoError(c.t, err)
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, "test")
	require.NoError(c.t, err)
	in := &instance{registry: registry, seen: &seen{Metrics: m, ends: make(map[string]int)}, done: make(chan error, 1)}
	in.Scheduler, err = cronrunner.New(client, cronrunner.Config{
		InstanceID: fmt.Sprint("i", len(c.all)), LeaderTTL: 2 * time.Second, DrainTimeout: -1, Observer: in.seen, CommitHook: m.Committed,
	})
	require.NoError(c.t, err)
	for _, j := range c.definitions() {
		require.NoError(c.t, in.Register(j))
	}
	ctx, stop := context.WithCancel(context.Background())
	in.stop = stop
	go func() {
		err := in.Run(ctx)
		_ = client.Close()
		in.done <- err
	}()
	c.t.Cleanup(func() { stop(); require.NoError(c.t, c.wait(in)) })
	c.places[place], c.all = in, append(c.all, in)
}

// fault does something to a place, or to etcd.
func (c *chaos) fault() {
	place := c.rand.IntN(seats)
	for i, in := range c.places { // mostly to who leads
		if _, leads := in.Elector().Leading(); leads && c.rand.IntN(3) > 0 {
			place = i
		}
	}
	in, proxy := c.places[place], c.proxy[place]
	switch c.rand.IntN(10) {
	case 0, 1:
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		_ = in.Elector().Resign(ctx)
	case 2:
		proxy.Cut()
	case 3:
		proxy.Pause()
	case 4:
		proxy.Pause(etcdtest.ToClient)
	case 5: // told to stop
		proxy.Heal()
		in.stop()
		c.sit(place)
	case 6: // killed
		in.killed = true
		proxy.Cut()
		in.stop()
		require.NoError(c.t, c.wait(in))
		proxy.Heal()
		c.sit(place)
	case 7:
		require.NoError(c.t, c.cluster.Restart())
	default:
		for _, p := range c.proxy {
			p.Heal()
		}
	}
}

func (c *chaos) wait(in *instance) error {
	err := <-in.done
	in.done <- err
	return err
}

// wish asks something of a job. What is refused was no good idea.
func (c *chaos) wish() {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	job := c.jobs[c.rand.IntN(len(c.jobs))]
	def, err := c.store.Job(ctx, job)
	if err != nil {
		return
	}
	st := def.View.Status
	ask := state.Request{Job: job, By: by}
	switch c.rand.IntN(6) {
	case 0:
		_, _ = c.store.Pause(ctx, job, by, "")
		return
	case 1, 2:
		_, _ = c.store.Resume(ctx, job, by, "")
		return
	case 3:
		ask.Kind = state.AskTrigger
	case 4:
		ask.Kind, ask.Run = state.AskRetry, st.LastRunID
	case 5:
		runs := slices.Concat(st.Live, st.Queue)
		if len(runs) == 0 {
			return
		}
		ask.Kind, ask.Run = state.AskCancel, runs[c.rand.IntN(len(runs))]
	}
	_, _ = c.store.Submit(ctx, ask)
}

// calm ends all faults, and waits until nothing is left to do.
func (c *chaos) calm() {
	c.t.Helper()
	for _, p := range c.proxy {
		p.Heal()
	}
	for _, job := range c.jobs {
		_, err := c.store.Resume(c.t.Context(), job, by, "")
		require.NoError(c.t, err)
	}
	for _, in := range c.all {
		if !slices.Contains(c.places[:], in) {
			require.NoError(c.t, c.wait(in), "it was told to stop")
		}
	}
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		asked, err := c.store.Requests(c.t.Context())
		require.NoError(t, err)
		require.Empty(t, asked)
		for _, job := range c.jobs {
			def, err := c.store.Job(c.t.Context(), job)
			require.NoError(t, err)
			st := def.View.Status
			require.Empty(t, st.Live, job)
			require.Empty(t, st.Queue, job)
			require.True(t, st.NextRunAt.IsZero(), "%s is due at %s", job, st.NextRunAt)
			if job != "few" { // it may be exhausted
				require.Equal(t, c.end.UTC(), st.Cursor, job)
			}
		}
	}, patience, 100*time.Millisecond)
}

// compare holds the metrics of all instances, dead and alive, against the records.
func (c *chaos) compare() {
	t := c.t
	killed := make(map[string]bool)
	told := make(map[string]int)
	for _, in := range c.all {
		killed[in.ID()] = in.killed
		in.seen.mu.Lock()
		for run, n := range in.seen.ends {
			told[run] += n
		}
		in.seen.mu.Unlock()
	}
	shown := c.shown()
	var ends, lost, untouched int
	for _, job := range c.jobs {
		runs, err := tally.Read(t.Context(), c.client, c.keys, job)
		require.NoError(t, err)
		def, err := c.store.Job(t.Context(), job)
		require.NoError(t, err)
		require.Empty(t, tally.Differences(def.View.Status, runs), job)
		shown.compare(job, runs)

		observed := make([]state.Run, 0, len(runs))
		for _, r := range runs {
			switch n := told[job+"/"+r.ID]; n {
			case 0: // it was written, and the answer was lost for good
				require.True(t, killed[r.Instance], "%s/%s of %s was not told", job, r.ID, r.Instance)
				lost++
			default:
				require.Equal(t, 1, n, "%s/%s was told of more than once", job, r.ID)
				observed = append(observed, r)
			}
			if r.Recoveries == 0 {
				untouched++
			}
			ends++
		}
		c.compareJob(job, &def.View.Status, tally.Count(observed))
	}
	t.Logf("%d instances, %d records, %d without a recovery, %d whose writer was killed before the answer", len(c.all), ends, untouched, lost)
	require.Greater(t, ends, 100)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		require.InDelta(t, 1, c.sum(c.places[:], "etcdcron_leader"), 0)
	}, patience, 100*time.Millisecond)
}

// compareJob compares what was counted at all instances with the records that they have had answers to, and what the
// leader shows with the status.
func (c *chaos) compareJob(job string, status *state.JobStatus, counted state.JobStatus) {
	t := c.t
	for what, pair := range map[string][2]float64{
		"succeeded": {c.sum(c.all, "etcdcron_job_runs_total", "job", job, "status", "succeeded"), float64(counted.SucceededTotal)},
		"failed":    {c.sum(c.all, "etcdcron_job_runs_total", "job", job, "status", "failed"), float64(counted.FailedTotal)},
		"canceled":  {c.sum(c.all, "etcdcron_job_runs_total", "job", job, "status", "canceled"), float64(counted.CanceledTotal)},
		"missed":    {c.sum(c.all, "etcdcron_job_missed_total", "job", job), float64(counted.MissedTotal)},
		"skipped":   {c.sum(c.all, "etcdcron_job_skipped_total", "job", job), float64(counted.SkippedTotal)},
		"running":   {c.sum(c.all, "etcdcron_job_running", "job", job), 0},
	} {
		require.InDelta(t, pair[1], pair[0], 0, "%s: %s", job, what)
	}
	for reason, n := range counted.SkippedByReason {
		require.InDelta(t, n, c.sum(c.all, "etcdcron_job_skipped_total", "job", job, "reason", reason), 0, "%s: %s", job, reason)
	}
	retries := c.sum(c.all, "etcdcron_job_retries_total", "job", job)
	require.LessOrEqual(t, retries, float64(status.RetriedTotal), job)

	require.EventuallyWithT(t, func(t *assert.CollectT) { // what it was told last may be on its way
		require.InDelta(t, status.ConsecutiveFailures, c.sum(c.places[:], "etcdcron_job_consecutive_failures", "job", job), 0, job)
		require.InDelta(t, status.Pending, c.sum(c.places[:], "etcdcron_job_pending", "job", job), 0, job)
		require.InDelta(t, 0, c.sum(c.places[:], "etcdcron_job_next_run_timestamp_seconds", "job", job), 0, job)
		succeeded := slices.Collect(maps.Values(c.values(c.places[:], "etcdcron_job_last_success_timestamp_seconds", "job", job)))
		if status.LastSuccessAt.IsZero() {
			require.Empty(t, succeeded, job)
			return
		}
		require.NotEmpty(t, succeeded, job)
		require.InDelta(t, float64(status.LastSuccessAt.UnixMilli())/1000, slices.Max(succeeded), 0.0005, job)
	}, patience, 100*time.Millisecond)
}

func (c *chaos) sum(instances []*instance, name string, labels ...string) (sum float64) {
	for _, v := range c.values(instances, name, labels...) {
		sum += v
	}
	return sum
}

// values are those of each series of that name that has these labels.
func (c *chaos) values(instances []*instance, name string, labels ...string) map[string]float64 {
	values := make(map[string]float64)
	for _, in := range instances {
		families, err := in.registry.Gather()
		require.NoError(c.t, err)
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			for _, series := range family.GetMetric() {
				has := make(map[string]string)
				for _, label := range series.GetLabel() {
					has[label.GetName()] = label.GetValue()
				}
				match := true
				for i := 0; i < len(labels); i += 2 {
					match = match && has[labels[i]] == labels[i+1]
				}
				if match {
					values[in.ID()+strings.Join(slices.Sorted(maps.Values(has)), ",")] = series.GetCounter().GetValue() + series.GetGauge().GetValue()
				}
			}
		}
	}
	return values
}
