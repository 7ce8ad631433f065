package metrics

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// Metrics is a [cronrunner.Observer] that Prometheus can scrape. Safe for concurrent use.
type Metrics struct {
	leader      prometheus.Gauge
	transitions prometheus.Counter
	blocked     prometheus.GaugeFunc

	runs        *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	startDelay  *prometheus.HistogramVec
	running     *prometheus.GaugeVec
	pending     *prometheus.GaugeVec
	skipped     *prometheus.CounterVec
	missed      *prometheus.CounterVec
	retries     *prometheus.CounterVec
	failures    *prometheus.GaugeVec
	lastSuccess *prometheus.GaugeVec
	nextRun     *prometheus.GaugeVec

	alerting   *prometheus.GaugeVec
	alerts     *prometheus.CounterVec
	deliveries *prometheus.CounterVec

	lockLost   prometheus.Counter
	recoveries prometheus.Counter

	commitDuration prometheus.Histogram
	commitBatch    prometheus.Histogram
	commitErrors   prometheus.Counter
	etcdRetries    *prometheus.CounterVec

	build prometheus.Gauge

	electionBlocked atomic.Pointer[func() bool]

	mu      sync.Mutex
	leading bool
	jobs    map[string]*jobSeries
	own     int // how many of them have histograms of their own
}

// MaxJobHistograms is how many jobs have histograms of their own. The runs of further ones are observed in one series
// for all of them, whose label job is empty: a histogram is as large as fifteen other series, and ten thousand jobs
// would make each scrape 28 MB. Sums over the jobs are not changed by that.
const MaxJobHistograms = 1000

// jobSeries is what has to be remembered of a job to keep its series right. Guarded by Metrics.mu.
type jobSeries struct {
	started   map[string]struct{} // runs whose handlers are being called
	revision  int64               // of the status that the gauges show
	histogram bool                // it has histograms of its own
	retired   bool                // its series go with its last run
	alarmed   bool                // it has series of incidents that last
}

// New returns metrics that are registered with reg, all or none. With a nil reg they are registered nowhere: they
// are a [prometheus.Collector] themselves. version is shown as a label of etcdcron_build_info; "" is "unknown". Its
// error is reg's, which has metrics of these names already: those of another scheduler in the process need a
// registry of their own, or labels by [prometheus.WrapRegistererWith].
func New(reg prometheus.Registerer, version string) (*Metrics, error) {
	m := &Metrics{jobs: make(map[string]*jobSeries)}
	m.define(version)
	if reg == nil {
		return m, nil
	}
	if err := reg.Register(m); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}

// WatchElection has etcdcron_election_blocked tell what blocked says. blocked must not block.
func (m *Metrics) WatchElection(blocked func() bool) { m.electionBlocked.Store(&blocked) }

// Committed is a [state.CommitHook].
func (m *Metrics) Committed(took time.Duration, mutations int, err error) {
	m.commitDuration.Observe(took.Seconds())
	m.commitBatch.Observe(float64(mutations))
	if err != nil {
		m.commitErrors.Inc()
	}
}

// Observe takes an event of the scheduler.
func (m *Metrics) Observe(ev cronrunner.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch ev := ev.(type) {
	case cronrunner.Elected:
		m.elected()
	case cronrunner.Deposed:
		m.deposed()
	case cronrunner.Planned:
		m.planned(&ev)
	case cronrunner.Started:
		m.begun(&ev)
	case cronrunner.Recorded:
		m.recorded(&ev)
	case cronrunner.Interrupted:
		m.ended(&ev.Run)
		if errors.Is(ev.Cause, cronrunner.ErrLockLost) {
			m.lockLost.Inc()
		}
		m.clear(ev.Run.Job)
	case cronrunner.Retried:
		m.ended(&ev.Run)
		m.retries.WithLabelValues(ev.Run.Job).Inc()
	case cronrunner.Alerted:
		m.alerts.WithLabelValues(ev.Job, string(ev.Incident.Kind)).Inc()
	case cronrunner.Notified:
		m.deliveries.WithLabelValues(resultOf(ev)).Inc()
	case cronrunner.Recovered:
		m.recoveries.Inc()
	case cronrunner.Retrying:
		m.etcdRetries.WithLabelValues(ev.Operation).Inc()
	case cronrunner.Retired:
		if js := m.jobs[ev.Job]; js != nil {
			js.retired = true
			m.clear(ev.Job)
		}
	}
}

func (m *Metrics) elected() {
	m.leading = true
	m.leader.Set(1)
	m.transitions.Inc()
	for _, js := range m.jobs {
		js.revision = 0 // of an etcd that was restored they may be smaller
	}
}

// deposed takes away what only the leader knows: it would stand still here, and be wrong.
func (m *Metrics) deposed() {
	m.leading = false
	m.leader.Set(0)
	m.failures.Reset()
	m.pending.Reset()
	m.nextRun.Reset()
	m.alerting.Reset()
	for _, js := range m.jobs {
		js.alarmed = false
	}
}

func (m *Metrics) job(name string) *jobSeries {
	js := m.jobs[name]
	if js == nil {
		js = &jobSeries{}
		m.jobs[name] = js
	}
	return js
}

// planned also makes the job's counters appear at 0: an increase from nothing is none to Prometheus, so
// the first failure would go unseen.
func (m *Metrics) planned(ev *cronrunner.Planned) {
	m.job(ev.Job).retired = false
	m.runs.WithLabelValues(ev.Job, string(state.Succeeded))
	m.runs.WithLabelValues(ev.Job, string(state.Failed))
	m.missed.WithLabelValues(ev.Job)
	m.running.WithLabelValues(ev.Job)

	m.stands(ev.Job, &ev.Status, ev.Revision)
	switch next := ev.Status.NextRunAt; {
	case !m.leading:
	case next.IsZero():
		m.nextRun.DeleteLabelValues(ev.Job)
	default:
		m.nextRun.WithLabelValues(ev.Job).Set(seconds(next))
	}
}

// stands shows where a job stands, also after a failover and before its next run, unless something newer is shown.
func (m *Metrics) stands(job string, st *state.JobStatus, revision int64) {
	js := m.job(job)
	if revision < js.revision {
		return
	}
	js.revision = revision
	if at := st.LastSuccessAt; !at.IsZero() {
		m.lastSuccess.WithLabelValues(job).Set(seconds(at))
	}
	if m.leading {
		m.failures.WithLabelValues(job).Set(float64(st.ConsecutiveFailures))
		m.pending.WithLabelValues(job).Set(float64(st.Pending))
		m.alarm(js, job, st)
	}
}

// alarm shows the incidents that last. Most jobs have none, and no series.
func (m *Metrics) alarm(js *jobSeries, job string, st *state.JobStatus) {
	if !js.alarmed && len(st.Alerting) == 0 {
		return
	}
	js.alarmed = false
	for _, kind := range []state.AlertKind{state.AlertFailing, state.AlertMissed, state.AlertOverrun} {
		if !st.Alerts(kind) {
			m.alerting.DeleteLabelValues(job, string(kind))
			continue
		}
		m.alerting.WithLabelValues(job, string(kind)).Set(1)
		js.alarmed = true
	}
}

// The results of telling.
const (
	resultTold    = "told"
	resultFailed  = "failed"
	resultGivenUp = "given_up"
)

func resultOf(ev cronrunner.Notified) string {
	switch {
	case ev.GivenUp:
		return resultGivenUp
	case ev.Err != nil:
		return resultFailed
	default:
		return resultTold
	}
}

func (m *Metrics) begun(ev *cronrunner.Started) {
	js := m.job(ev.Run.Job)
	if js.started == nil {
		js.started = make(map[string]struct{})
	}
	js.started[ev.Run.ID] = struct{}{}
	m.running.WithLabelValues(ev.Run.Job).Set(float64(len(js.started)))
	// A run that is caught up or recovered is late by an outage, which says nothing about the scheduler.
	if ev.Run.Trigger == state.BySchedule && ev.Run.Attempt <= 1 {
		m.startDelay.WithLabelValues(m.histogramOf(ev.Run.Job)).Observe(ev.Delay.Seconds())
	}
}

// ended reports whether the run was one whose handler was called here.
func (m *Metrics) ended(run *state.Run) bool {
	js := m.job(run.Job)
	if _, ok := js.started[run.ID]; !ok {
		return false
	}
	delete(js.started, run.ID)
	m.running.WithLabelValues(run.Job).Set(float64(len(js.started)))
	return true
}

func (m *Metrics) recorded(ev *cronrunner.Recorded) {
	run := &ev.Run
	switch run.Status {
	case state.Skipped:
		m.skipped.WithLabelValues(run.Job, run.Reason).Add(float64(run.Times()))
	case state.Missed:
		m.missed.WithLabelValues(run.Job).Add(float64(run.Times()))
	case state.Succeeded, state.Failed, state.Canceled:
		m.runs.WithLabelValues(run.Job, string(run.Status)).Add(float64(counted(run)))
		if m.ended(run) {
			m.duration.WithLabelValues(m.histogramOf(run.Job)).Observe(float64(run.DurationMS) / 1000)
		}
	case state.Pending, state.Running: // no ends
	}
	m.stands(run.Job, &ev.Status, ev.Revision)
	m.clear(run.Job)
}

// counted is how many the end of a run counts for, as in its job's status: one run, or, if it has never begun, all the
// scheduled times that it stood for.
func counted(run *state.Run) int64 {
	if run.Attempt == 0 {
		return run.Times()
	}
	return 1
}

// histogramOf is the label under which the runs of a job are observed.
func (m *Metrics) histogramOf(job string) string {
	js := m.job(job)
	if !js.histogram && m.own < MaxJobHistograms {
		js.histogram = true
		m.own++
	}
	if !js.histogram {
		return ""
	}
	return job
}

// clear takes away the series of a job that was retired, once nothing of it runs here.
func (m *Metrics) clear(job string) {
	js := m.job(job)
	if !js.retired || len(js.started) > 0 {
		return
	}
	if js.histogram {
		m.own--
	}
	js.histogram, js.alarmed, js.revision = false, false, 0
	m.duration.DeleteLabelValues(job)
	m.startDelay.DeleteLabelValues(job)
	for _, vec := range []*prometheus.GaugeVec{m.running, m.pending, m.failures, m.lastSuccess, m.nextRun} {
		vec.DeleteLabelValues(job)
	}
	m.alerting.DeletePartialMatch(prometheus.Labels{"job": job})
	for _, vec := range []*prometheus.CounterVec{m.runs, m.missed, m.skipped, m.retries, m.alerts} {
		vec.DeletePartialMatch(prometheus.Labels{"job": job})
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// buildLabels are those of etcdcron_build_info.
func buildLabels(version string) prometheus.Labels {
	if version == "" {
		version = "unknown"
	}
	return prometheus.Labels{"version": version, "go_version": runtime.Version()}
}
