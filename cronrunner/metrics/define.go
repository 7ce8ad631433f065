package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etcdcron/etcdcron/cronrunner"
)

const namespace = "etcdcron"

var (
	// A run may be a moment's work or half a day's.
	durationBuckets = []float64{.01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400}
	// The goal is 10 ms for a thousand jobs of one second; a minute late is caught up, not late.
	delayBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 60}
	commitBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	batchBuckets  = []float64{1, 2, 5, 10, 20, 40, 80, 120}
)

// define makes every metric there is. The names are a contract: docs and alerts are written on them.
func (m *Metrics) define(version string) {
	m.leader = gauge("leader", "1 while this instance leads, else 0.")
	m.transitions = counter("leader_transitions_total", "Times this instance began to lead.")
	m.blocked = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "election_blocked",
		Help: "1 while an election key without a lease keeps every instance from leading; somebody must delete it.",
	}, m.isBlocked)

	m.runs = counterVec("job_runs_total", "Runs that have ended, by how: succeeded, failed or canceled.", "job", "status")
	m.duration = histogramVec("job_run_duration_seconds", "How long the last attempts of runs took.", durationBuckets)
	m.startDelay = histogramVec("job_start_delay_seconds",
		"How long after its scheduled time a run began. Runs that were caught up or recovered do not count.", delayBuckets)
	m.pending = gaugeVec("job_pending", "Runs that wait until their job is idle; told by the leader.")
	m.running = gaugeVec("job_running", "Runs that this instance is executing.")
	m.skipped = counterVec("job_skipped_total", "Scheduled times that were skipped, by reason.", "job", "reason")
	m.missed = counterVec("job_missed_total", "Scheduled times that were not run and will not be.", "job")
	m.retries = counterVec("job_retries_total", "Attempts that failed and are followed by another.", "job")
	m.failures = gaugeVec("job_consecutive_failures", "Failed runs since the last success. Told by the leader.")
	m.lastSuccess = gaugeVec("job_last_success_timestamp_seconds", "When a run last succeeded; the greatest of all instances counts.")
	m.nextRun = gaugeVec("job_next_run_timestamp_seconds", "When the job is due next. Told by the leader.")

	m.alerting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "job_alerting",
		Help: "1 while an incident of that kind lasts: failing, missed or overrun; none otherwise. Told by the leader.",
	}, []string{"job", "kind"})
	m.alerts = counterVec("alerts_total", "Incidents of jobs that have begun, by kind.", "job", "kind")
	m.deliveries = counterVec("alert_deliveries_total",
		"Calls that told of an incident or its end, by result: told, failed (and made again) or given_up.", "result")
	for _, result := range []string{resultTold, resultFailed, resultGivenUp} {
		m.deliveries.WithLabelValues(result) // an increase from nothing is none to Prometheus
	}

	m.lockLost = counter("lock_lost_total", "Attempts that were told to stop since their lock was not surely held any more.")
	m.recoveries = counter("recoveries_total", "Runs of lost instances that this one went on with.")

	m.commitDuration = histogram("etcd_commit_duration_seconds", "How long etcd transactions took, failed ones too.", commitBuckets)
	m.commitBatch = histogram("etcd_commit_batch_size", "How many changes an etcd transaction carried.", batchBuckets)
	m.commitErrors = counter("etcd_commit_errors_total", "etcd transactions that were refused, or had no answer in time.")
	m.etcdRetries = counterVec("etcd_retries_total", "Calls to etcd that failed and were tried again, by what they were for.", "operation")
	for _, operation := range cronrunner.RetryOperations() {
		m.etcdRetries.WithLabelValues(operation)
	}

	m.build = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels say what runs.", ConstLabels: buildLabels(version),
	})
	m.build.Set(1)
}

func (m *Metrics) isBlocked() float64 {
	if blocked := m.electionBlocked.Load(); blocked != nil && (*blocked)() {
		return 1
	}
	return 0
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.leader, m.transitions, m.blocked,
		m.runs, m.duration, m.startDelay, m.running, m.pending, m.skipped, m.missed, m.retries, m.failures, m.lastSuccess, m.nextRun,
		m.alerting, m.alerts, m.deliveries,
		m.lockLost, m.recoveries, m.commitDuration, m.commitBatch, m.commitErrors, m.etcdRetries, m.build,
	}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func gaugeVec(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, []string{"job"})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// histogram is a native one too, for a Prometheus that scrapes those: in steps of 10%. For the histograms of each
// job that would cost as much again as all the rest, in memory and at each scrape.
func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	})
}

func histogramVec(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, []string{"job"})
}
