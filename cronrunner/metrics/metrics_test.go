package metrics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/state"
)

var nine = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func newMetrics(t *testing.T) (*metrics.Metrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.New(reg, "v1.2.3")
	require.NoError(t, err)
	return m, reg
}

func ran(job, id string, status state.RunStatus) state.Run {
	return state.Run{
		Job: job, ID: id, Trigger: state.BySchedule, ScheduledAt: nine, Status: status,
		Attempt: 1, DurationMS: 1500, Error: "e-" + id,
	}
}

func start(m *metrics.Metrics, run state.Run, delay time.Duration) {
	run.Status = state.Running
	m.Observe(cronrunner.Started{Run: run, Delay: delay})
}

func requireSeries(t *testing.T, reg prometheus.Gatherer, name, expected string) {
	t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(expected), "\n") {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(b.String()), name))
}

func TestRunIsCounted(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Elected{Term: 1})
	m.Observe(cronrunner.Planned{Job: "billing", Status: state.JobStatus{NextRunAt: nine}})
	run := ran("billing", "r1", state.Succeeded)
	start(m, run, 4*time.Millisecond)
	requireSeries(t, reg, "etcdcron_job_running", `
		# HELP etcdcron_job_running Runs that this instance is executing.
		# TYPE etcdcron_job_running gauge
		etcdcron_job_running{job="billing"} 1`)

	m.Observe(cronrunner.Recorded{Run: run, Status: state.JobStatus{LastSuccessAt: nine.Add(1500 * time.Millisecond)}})
	requireSeries(t, reg, "etcdcron_job_running", `
		# HELP etcdcron_job_running Runs that this instance is executing.
		# TYPE etcdcron_job_running gauge
		etcdcron_job_running{job="billing"} 0`)
	requireSeries(t, reg, "etcdcron_job_runs_total", `
		# HELP etcdcron_job_runs_total Runs that have ended, by how: succeeded, failed or canceled.
		# TYPE etcdcron_job_runs_total counter
		etcdcron_job_runs_total{job="billing",status="failed"} 0
		etcdcron_job_runs_total{job="billing",status="succeeded"} 1`)
	requireSeries(t, reg, "etcdcron_job_last_success_timestamp_seconds", fmt.Sprintf(`
		# HELP etcdcron_job_last_success_timestamp_seconds When a run last succeeded; the greatest of all instances counts.
		# TYPE etcdcron_job_last_success_timestamp_seconds gauge
		etcdcron_job_last_success_timestamp_seconds{job="billing"} %g`, float64(nine.UnixMilli())/1000+1.5))
	requireSeries(t, reg, "etcdcron_job_next_run_timestamp_seconds", fmt.Sprintf(`
		# HELP etcdcron_job_next_run_timestamp_seconds When the job is due next. Told by the leader.
		# TYPE etcdcron_job_next_run_timestamp_seconds gauge
		etcdcron_job_next_run_timestamp_seconds{job="billing"} %g`, float64(nine.Unix())))
	require.Equal(t, 1, samples(t, reg, "etcdcron_job_run_duration_seconds"))
	require.Equal(t, 1, samples(t, reg, "etcdcron_job_start_delay_seconds"))
}

func TestNotRunCountsEveryTimeItStandsFor(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	missed := ran("billing", "r1", state.Missed)
	missed.Count, missed.Reason = 86400, state.ReasonSuperseded
	m.Observe(cronrunner.Recorded{Run: missed})
	skipped := ran("billing", "r2", state.Skipped)
	skipped.Reason = state.ReasonOverlap
	m.Observe(cronrunner.Recorded{Run: skipped})

	requireSeries(t, reg, "etcdcron_job_missed_total", `
		# HELP etcdcron_job_missed_total Scheduled times that were not run and will not be.
		# TYPE etcdcron_job_missed_total counter
		etcdcron_job_missed_total{job="billing"} 86400`)
	requireSeries(t, reg, "etcdcron_job_skipped_total", `
		# HELP etcdcron_job_skipped_total Scheduled times that were skipped, by reason.
		# TYPE etcdcron_job_skipped_total counter
		etcdcron_job_skipped_total{job="billing",reason="overlap"} 1`)
	require.Zero(t, samples(t, reg, "etcdcron_job_run_duration_seconds"))
}

// A run that never began here must not take the gauge below zero, nor count as one of 0 s.
func TestEndWithoutStart(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Planned{Job: "billing"})
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r1", state.Canceled)})
	m.Observe(cronrunner.Interrupted{Run: ran("billing", "r2", state.Running), Cause: cronrunner.ErrLockLost})
	requireSeries(t, reg, "etcdcron_job_running", `
		# HELP etcdcron_job_running Runs that this instance is executing.
		# TYPE etcdcron_job_running gauge
		etcdcron_job_running{job="billing"} 0`)
	require.Zero(t, samples(t, reg, "etcdcron_job_run_duration_seconds"))
}

// Each attempt of a run is called by itself: a retry does not leave it running twice.
func TestRetriesOfARun(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	run := ran("billing", "r1", state.Running)
	start(m, run, 0)
	m.Observe(cronrunner.Retried{Run: run})
	running := func(n int) {
		requireSeries(t, reg, "etcdcron_job_running", fmt.Sprintf(`
		# HELP etcdcron_job_running Runs that this instance is executing.
		# TYPE etcdcron_job_running gauge
		etcdcron_job_running{job="billing"} %d`, n))
	}
	running(0)
	run.Attempt = 2
	start(m, run, 0)
	running(1)
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r1", state.Failed)})
	running(0)
	requireSeries(t, reg, "etcdcron_job_retries_total", `
		# HELP etcdcron_job_retries_total Attempts that failed and are followed by another.
		# TYPE etcdcron_job_retries_total counter
		etcdcron_job_retries_total{job="billing"} 1`)
}

func TestInterruptedAndRecovered(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	run := ran("billing", "r1", state.Running)
	start(m, run, 0)
	m.Observe(cronrunner.Interrupted{Run: run, Cause: fmt.Errorf("told so: %w", cronrunner.ErrLockLost)})
	m.Observe(cronrunner.Interrupted{Run: run, Cause: state.ErrNotOwner}) // taken over: no lock lost here
	run.Attempt = 2
	m.Observe(cronrunner.Recovered{Run: run})
	start(m, run, time.Minute)

	requireSeries(t, reg, "etcdcron_lock_lost_total", `
		# HELP etcdcron_lock_lost_total Attempts that were told to stop since their lock was not surely held any more.
		# TYPE etcdcron_lock_lost_total counter
		etcdcron_lock_lost_total 1`)
	requireSeries(t, reg, "etcdcron_recoveries_total", `
		# HELP etcdcron_recoveries_total Runs of lost instances that this one went on with.
		# TYPE etcdcron_recoveries_total counter
		etcdcron_recoveries_total 1`)
	requireSeries(t, reg, "etcdcron_job_running", `
		# HELP etcdcron_job_running Runs that this instance is executing.
		# TYPE etcdcron_job_running gauge
		etcdcron_job_running{job="billing"} 1`)
	require.Equal(t, 1, samples(t, reg, "etcdcron_job_start_delay_seconds"), "a recovered run is not late")
}

func TestFormerLeaderDoesNotGoOnTelling(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Elected{Term: 1})
	m.Observe(cronrunner.Planned{Job: "billing", Status: state.JobStatus{NextRunAt: nine}})
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r1", state.Failed), Status: state.JobStatus{ConsecutiveFailures: 1, LastSuccessAt: nine}})
	require.Equal(t, 1, series(t, reg, "etcdcron_job_consecutive_failures"))

	m.Observe(cronrunner.Deposed{Term: 1, Cause: errors.New("lost")})
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r2", state.Failed), Status: state.JobStatus{ConsecutiveFailures: 2, LastSuccessAt: nine}})
	require.Zero(t, series(t, reg, "etcdcron_job_consecutive_failures"))
	require.Zero(t, series(t, reg, "etcdcron_job_next_run_timestamp_seconds"))
	require.Equal(t, 1, series(t, reg, "etcdcron_job_last_success_timestamp_seconds"))
	requireSeries(t, reg, "etcdcron_leader", `
		# HELP etcdcron_leader 1 while this instance leads, else 0.
		# TYPE etcdcron_leader gauge
		etcdcron_leader 0`)
	requireSeries(t, reg, "etcdcron_leader_transitions_total", `
		# HELP etcdcron_leader_transitions_total Times this instance began to lead.
		# TYPE etcdcron_leader_transitions_total counter
		etcdcron_leader_transitions_total 1`)
}

// Ten thousand runs with as many ids and errors add no series (case K10).
func TestSeriesDependOnJobsAlone(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Elected{Term: 1})
	count := func(runs int) int {
		for i := range runs {
			run := ran(fmt.Sprintf("job%d", i%5), fmt.Sprintf("r%d", i), state.Failed)
			m.Observe(cronrunner.Planned{Job: run.Job, Status: state.JobStatus{NextRunAt: nine}})
			start(m, run, 0)
			m.Observe(cronrunner.Recorded{Run: run, Status: state.JobStatus{ConsecutiveFailures: int64(i)}})
		}
		n, err := testutil.GatherAndCount(reg)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, count(5), count(10_000))
}

func TestTwoInOneProcessAndAClash(t *testing.T) {
	t.Parallel()
	one, first := newMetrics(t)
	_, second := newMetrics(t)
	one.Observe(cronrunner.Elected{Term: 1})
	leads := func(v int) string {
		return fmt.Sprintf(`
		# HELP etcdcron_leader 1 while this instance leads, else 0.
		# TYPE etcdcron_leader gauge
		etcdcron_leader %d`, v)
	}
	requireSeries(t, first, "etcdcron_leader", leads(1))
	requireSeries(t, second, "etcdcron_leader", leads(0))

	host := prometheus.NewRegistry()
	theirs := prometheus.NewGauge(prometheus.GaugeOpts{Name: "etcdcron_leader", Help: "of the host's own"})
	require.NoError(t, host.Register(theirs))
	_, err := metrics.New(host, "")
	require.Error(t, err)
	n, err := testutil.GatherAndCount(host)
	require.NoError(t, err)
	require.Equal(t, 1, n, "a refused registration leaves nothing behind")
}

// What was told later may be older: the loop tells of a decision while a run ends.
func TestWhatIsOlderIsNotShown(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Elected{Term: 1})
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r1", state.Failed), Status: state.JobStatus{ConsecutiveFailures: 3}, Revision: 30})
	m.Observe(cronrunner.Planned{Job: "billing", Status: state.JobStatus{ConsecutiveFailures: 2}, Revision: 20})
	shown := func(n int) {
		requireSeries(t, reg, "etcdcron_job_consecutive_failures", fmt.Sprintf(`
		# HELP etcdcron_job_consecutive_failures Failed runs since the last success. Told by the leader.
		# TYPE etcdcron_job_consecutive_failures gauge
		etcdcron_job_consecutive_failures{job="billing"} %d`, n))
	}
	shown(3)
	m.Observe(cronrunner.Elected{Term: 2}) // perhaps since etcd was restored
	m.Observe(cronrunner.Planned{Job: "billing", Status: state.JobStatus{ConsecutiveFailures: 1}, Revision: 10})
	shown(1)
}

func TestARetiredJobLeavesNoSeries(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	of := func() int {
		families, err := reg.Gather()
		require.NoError(t, err)
		n := 0
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "job" && label.GetValue() == "billing" {
						n++
					}
				}
			}
		}
		return n
	}
	m.Observe(cronrunner.Elected{Term: 1})
	m.Observe(cronrunner.Retired{Job: "billing"})
	m.Observe(cronrunner.Planned{Job: "billing", Status: state.JobStatus{NextRunAt: nine}})
	run := ran("billing", "r1", state.Succeeded)
	start(m, run, 0)
	m.Observe(cronrunner.Retried{Run: run})
	start(m, run, 0)
	skipped := ran("billing", "r2", state.Skipped)
	skipped.Reason = state.ReasonOverlap
	m.Observe(cronrunner.Recorded{Run: skipped, Status: state.JobStatus{LastSuccessAt: nine}})

	m.Observe(cronrunner.Retired{Job: "billing"})
	require.NotZero(t, of(), "one of its runs goes on here")
	m.Observe(cronrunner.Recorded{Run: run, Status: state.JobStatus{LastSuccessAt: nine}})
	require.Zero(t, of())
	m.Observe(cronrunner.Recorded{Run: skipped}) // a request was answered, too late
	require.Zero(t, of())
	m.Observe(cronrunner.Planned{Job: "billing"})
	require.NotZero(t, of(), "it is back")
}

// Ten thousand jobs do not make ten thousand histograms, and no run is left out.
func TestHistogramsAreBounded(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	const jobs = metrics.MaxJobHistograms + 7
	for i := range jobs {
		run := ran(fmt.Sprint("job", i), "r1", state.Succeeded)
		start(m, run, 0)
		m.Observe(cronrunner.Recorded{Run: run})
	}
	for _, name := range []string{"etcdcron_job_run_duration_seconds", "etcdcron_job_start_delay_seconds"} {
		require.Equal(t, metrics.MaxJobHistograms+1, series(t, reg, name))
		require.Equal(t, jobs, samples(t, reg, name))
	}
	m.Observe(cronrunner.Retired{Job: "job0"})
	run := ran("another", "r1", state.Succeeded)
	start(m, run, 0)
	require.Equal(t, metrics.MaxJobHistograms+1, series(t, reg, "etcdcron_job_start_delay_seconds"), "its place is free")
}

// A run that waited for several scheduled times and was canceled counts for all of them, as in the status.
func TestCanceledBeforeItBegan(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	run := ran("billing", "r1", state.Canceled)
	run.Attempt, run.Count = 0, 3
	m.Observe(cronrunner.Recorded{Run: run})
	requireSeries(t, reg, "etcdcron_job_runs_total", `
		# HELP etcdcron_job_runs_total Runs that have ended, by how: succeeded, failed or canceled.
		# TYPE etcdcron_job_runs_total counter
		etcdcron_job_runs_total{job="billing",status="canceled"} 3`)
}

func TestRetriesOfEtcdAreCounted(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	for _, operation := range cronrunner.RetryOperations() {
		m.Observe(cronrunner.Retrying{Operation: operation, Err: errors.New("no answer")})
	}
	m.Committed(time.Second, 1, errors.New("no answer"))
	m.Committed(time.Second, 1, nil)
	require.Equal(t, len(cronrunner.RetryOperations()), series(t, reg, "etcdcron_etcd_retries_total"))
	requireSeries(t, reg, "etcdcron_etcd_commit_errors_total", `
		# HELP etcdcron_etcd_commit_errors_total etcd transactions that were refused, or had no answer in time.
		# TYPE etcdcron_etcd_commit_errors_total counter
		etcdcron_etcd_commit_errors_total 1`)
}

func TestWithoutARegistry(t *testing.T) {
	t.Parallel()
	m, err := metrics.New(nil, "")
	require.NoError(t, err)
	m.Observe(cronrunner.Elected{Term: 1})
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m), "it is a collector itself")
	require.Equal(t, 1, series(t, reg, "etcdcron_leader"))
}

func TestElectionBlockedAndCommits(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	blocked := func(v int) string {
		return fmt.Sprintf(`
		# HELP etcdcron_election_blocked 1 while an election key without a lease keeps every instance from leading; somebody must delete it.
		# TYPE etcdcron_election_blocked gauge
		etcdcron_election_blocked %d`, v)
	}
	requireSeries(t, reg, "etcdcron_election_blocked", blocked(0))
	m.WatchElection(func() bool { return true })
	requireSeries(t, reg, "etcdcron_election_blocked", blocked(1))

	m.Committed(3*time.Millisecond, 60, nil)
	require.Equal(t, 1, samples(t, reg, "etcdcron_etcd_commit_duration_seconds"))
	require.Equal(t, 1, samples(t, reg, "etcdcron_etcd_commit_batch_size"))
	require.Equal(t, 1, series(t, reg, "etcdcron_build_info"))
}

// samples is how many observations all histograms of a name have.
func samples(t *testing.T, reg prometheus.Gatherer, name string) int {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	n := 0
	for _, f := range families {
		if f.GetName() == name {
			for _, metric := range f.GetMetric() {
				n += int(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return n
}

func series(t *testing.T, reg prometheus.Gatherer, name string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(reg, name)
	require.NoError(t, err)
	return n
}

func TestIncidentsAreShownWhileTheyLast(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	requireNone := func(why string) {
		t.Helper()
		n, err := testutil.GatherAndCount(reg, "etcdcron_job_alerting")
		require.NoError(t, err)
		require.Zero(t, n, why)
	}
	failing := state.JobStatus{Alerting: []state.Incident{{Kind: state.AlertFailing, Run: "r1"}, {Kind: state.AlertMissed, Run: "r0", ResolvedAt: nine, Untold: true}}}
	const head = "# HELP etcdcron_job_alerting 1 while an incident of that kind lasts: failing, missed or overrun; none otherwise. Told by the leader.\n" +
		"# TYPE etcdcron_job_alerting gauge\n"
	m.Observe(cronrunner.Planned{Job: "billing", Status: failing})
	requireNone("a follower does not know")

	m.Observe(cronrunner.Elected{Term: 1})
	m.Observe(cronrunner.Planned{Job: "billing", Status: failing})
	m.Observe(cronrunner.Planned{Job: "calm"})
	requireSeries(t, reg, "etcdcron_job_alerting", head+`etcdcron_job_alerting{job="billing",kind="failing"} 1`)
	failing.Alerting[0].Kind = state.AlertOverrun
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r2", state.Skipped), Status: failing})
	requireSeries(t, reg, "etcdcron_job_alerting", head+`etcdcron_job_alerting{job="billing",kind="overrun"} 1`)
	m.Observe(cronrunner.Recorded{Run: ran("billing", "r3", state.Succeeded)})
	requireNone("none lasts, or none is known")

	m.Observe(cronrunner.Planned{Job: "billing", Status: failing})
	m.Observe(cronrunner.Deposed{Term: 1})
	requireNone("none lasts, or none is known")
	m.Observe(cronrunner.Elected{Term: 2})
	m.Observe(cronrunner.Planned{Job: "billing"})
	requireNone("none lasts, or none is known")
}

func TestAlertsAreCounted(t *testing.T) {
	t.Parallel()
	m, reg := newMetrics(t)
	m.Observe(cronrunner.Alerted{Job: "billing", Incident: state.Incident{Kind: state.AlertFailing}})
	m.Observe(cronrunner.Alerted{Job: "billing", Incident: state.Incident{Kind: state.AlertFailing}})
	m.Observe(cronrunner.Notified{Job: "billing", Err: errors.New("no")})
	m.Observe(cronrunner.Notified{Job: "billing", Err: errors.New("no")})
	m.Observe(cronrunner.Notified{Job: "billing"})
	requireSeries(t, reg, "etcdcron_alerts_total", `
		# HELP etcdcron_alerts_total Incidents of jobs that have begun, by kind.
		# TYPE etcdcron_alerts_total counter
		etcdcron_alerts_total{job="billing",kind="failing"} 2`)
	requireSeries(t, reg, "etcdcron_alert_deliveries_total", `
		# HELP etcdcron_alert_deliveries_total Calls that told of an incident or its end, by result: told, failed (and made again) or given_up.
		# TYPE etcdcron_alert_deliveries_total counter
		etcdcron_alert_deliveries_total{result="failed"} 2
		etcdcron_alert_deliveries_total{result="given_up"} 0
		etcdcron_alert_deliveries_total{result="told"} 1`)
	m.Observe(cronrunner.Notified{Job: "billing", Err: errors.New("no"), GivenUp: true})
	requireSeries(t, reg, "etcdcron_alert_deliveries_total", `
		# HELP etcdcron_alert_deliveries_total Calls that told of an incident or its end, by result: told, failed (and made again) or given_up.
		# TYPE etcdcron_alert_deliveries_total counter
		etcdcron_alert_deliveries_total{result="failed"} 2
		etcdcron_alert_deliveries_total{result="given_up"} 1
		etcdcron_alert_deliveries_total{result="told"} 1`)
}
