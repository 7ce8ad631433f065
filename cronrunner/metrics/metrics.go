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

	lockLost   prometheus.Counter
	recoveries prometheus.Counter

	commitDuration prometheus.Histogram
	commitBatch    prometheus.Histogram

	build prometheus.Gauge

	electionBlocked atomic.Pointer[func() bool]

	mu      sync.Mutex
	leading bool
	started map[runKey]struct{} // attempts whose handlers are being called
}

type runKey struct{ job, run string }

// New returns metrics that are registered with reg, all or none. With a nil reg they are registered nowhere: they
// are a [prometheus.Collector] themselves. version is shown as a label of etcdcron_build_info; "" is "unknown". Its
// error is reg's, which has metrics of these names already: those of another scheduler in the process need a
// registry of their own, or labels by [prometheus.WrapRegistererWith].
func New(reg prometheus.Registerer, version string) (*Metrics, error) {
	m := &Metrics{started: make(map[runKey]struct{})}
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
func (m *Metrics) Committed(took time.Duration, mutations int, _ error) {
	m.commitDuration.Observe(took.Seconds())
	m.commitBatch.Observe(float64(mutations))
}

// Observe takes an event of the scheduler.
func (m *Metrics) Observe(ev cronrunner.Event) {
	switch ev := ev.(type) {
	case cronrunner.Elected:
		m.elected()
	case cronrunner.Deposed:
		m.deposed()
	case cronrunner.Planned:
		m.planned(ev)
	case cronrunner.Started:
		m.begun(ev)
	case cronrunner.Recorded:
		m.recorded(ev)
	case cronrunner.Interrupted:
		m.ended(&ev.Run)
		if errors.Is(ev.Cause, cronrunner.ErrLockLost) {
			m.lockLost.Inc()
		}
	case cronrunner.Retried:
		m.ended(&ev.Run)
		m.retries.WithLabelValues(ev.Run.Job).Inc()
	case cronrunner.Recovered:
		m.recoveries.Inc()
	}
}

func (m *Metrics) elected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = true
	m.leader.Set(1)
	m.transitions.Inc()
}

// deposed takes away what only the leader knows: it would stand still here, and be wrong.
func (m *Metrics) deposed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = false
	m.leader.Set(0)
	m.failures.Reset()
	m.pending.Reset()
	m.nextRun.Reset()
}

// planned also makes the job's counters appear at 0: an increase from nothing is none to Prometheus, so
// the first failure would go unseen.
func (m *Metrics) planned(ev cronrunner.Planned) {
	m.runs.WithLabelValues(ev.Job, string(state.Succeeded))
	m.runs.WithLabelValues(ev.Job, string(state.Failed))
	m.missed.WithLabelValues(ev.Job)
	m.running.WithLabelValues(ev.Job)

	m.stands(ev.Job, &ev.Status)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch next := ev.Status.NextRunAt; {
	case !m.leading:
	case next.IsZero():
		m.nextRun.DeleteLabelValues(ev.Job)
	default:
		m.nextRun.WithLabelValues(ev.Job).Set(seconds(next))
	}
}

// stands shows where a job stands, also after a failover and before its next run.
func (m *Metrics) stands(job string, st *state.JobStatus) {
	if at := st.LastSuccessAt; !at.IsZero() {
		m.lastSuccess.WithLabelValues(job).Set(seconds(at))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leading {
		m.failures.WithLabelValues(job).Set(float64(st.ConsecutiveFailures))
		m.pending.WithLabelValues(job).Set(float64(st.Pending))
	}
}

func (m *Metrics) begun(ev cronrunner.Started) {
	m.mu.Lock()
	m.started[runKey{ev.Run.Job, ev.Run.ID}] = struct{}{}
	m.running.WithLabelValues(ev.Run.Job).Inc()
	m.mu.Unlock()
	// A run that is caught up or recovered is late by an outage, which says nothing about the scheduler.
	if ev.Run.Trigger == state.BySchedule && ev.Run.Attempt <= 1 {
		m.startDelay.WithLabelValues(ev.Run.Job).Observe(ev.Delay.Seconds())
	}
}

// ended reports whether the run was one whose handler was called here.
func (m *Metrics) ended(run *state.Run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := runKey{run.Job, run.ID}
	if _, ok := m.started[key]; !ok {
		return false
	}
	delete(m.started, key)
	m.running.WithLabelValues(run.Job).Dec()
	return true
}

func (m *Metrics) recorded(ev cronrunner.Recorded) {
	run := &ev.Run
	switch run.Status {
	case state.Skipped:
		m.skipped.WithLabelValues(run.Job, run.Reason).Add(float64(run.Times()))
	case state.Missed:
		m.missed.WithLabelValues(run.Job).Add(float64(run.Times()))
	case state.Succeeded, state.Failed, state.Canceled:
		m.runs.WithLabelValues(run.Job, string(run.Status)).Inc()
		if m.ended(run) {
			m.duration.WithLabelValues(run.Job).Observe(float64(run.DurationMS) / 1000)
		}
	case state.Pending, state.Running: // no ends
	}
	m.stands(run.Job, &ev.Status)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// buildLabels are those of etcdcron_build_info.
func buildLabels(version string) prometheus.Labels {
	if version == "" {
		version = "unknown"
	}
	return prometheus.Labels{"version": version, "go_version": runtime.Version()}
}
