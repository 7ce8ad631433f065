package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// families are all metrics of a scheduler to which everything has happened, each as its type and its labels.
func families(t *testing.T) map[string]string {
	t.Helper()
	m, reg := newMetrics(t)
	run := ran("billing", "r1", state.Succeeded)
	skipped := ran("billing", "r2", state.Skipped)
	skipped.Reason = state.ReasonOverlap
	m.Observe(cronrunner.Elected{Term: 1})
	failing := state.Incident{Kind: state.AlertFailing}
	lasts := state.JobStatus{NextRunAt: nine, LastSuccessAt: nine, Alerting: []state.Incident{failing}}
	m.Observe(cronrunner.Planned{Job: "billing", Status: lasts})
	m.Observe(cronrunner.Alerted{Job: "billing", Incident: failing})
	start(m, run, 0)
	m.Observe(cronrunner.Retried{Run: run})
	start(m, run, 0)
	m.Observe(cronrunner.Recorded{Run: run, Status: lasts})
	m.Observe(cronrunner.Recorded{Run: skipped, Status: lasts})
	all, err := reg.Gather()
	require.NoError(t, err)
	there := make(map[string]string)
	for _, family := range all {
		labels := []string{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		there[family.GetName()] = kindAndLabels(family.GetType().String(), labels)
	}
	return there
}

func kindAndLabels(kind string, labels []string) string {
	slices.Sort(labels)
	return strings.TrimSpace(strings.ToLower(kind) + " " + strings.Join(labels, ","))
}

// The names and labels are a contract, which people write rules on: these stay, whatever else there is.
func TestTheContract(t *testing.T) {
	t.Parallel()
	there := families(t)
	for name, want := range map[string]string{
		"etcdcron_leader":                             "gauge",
		"etcdcron_leader_transitions_total":           "counter",
		"etcdcron_job_runs_total":                     "counter job,status",
		"etcdcron_job_run_duration_seconds":           "histogram job",
		"etcdcron_job_start_delay_seconds":            "histogram job",
		"etcdcron_job_running":                        "gauge job",
		"etcdcron_job_pending":                        "gauge job",
		"etcdcron_job_skipped_total":                  "counter job,reason",
		"etcdcron_job_missed_total":                   "counter job",
		"etcdcron_job_consecutive_failures":           "gauge job",
		"etcdcron_job_last_success_timestamp_seconds": "gauge job",
		"etcdcron_job_next_run_timestamp_seconds":     "gauge job",
		"etcdcron_job_alerting":                       "gauge job,kind",
		"etcdcron_alerts_total":                       "counter job,kind",
		"etcdcron_alert_deliveries_total":             "counter result",
		"etcdcron_lock_lost_total":                    "counter",
		"etcdcron_recoveries_total":                   "counter",
		"etcdcron_etcd_commit_duration_seconds":       "histogram",
		"etcdcron_etcd_commit_batch_size":             "histogram",
		"etcdcron_build_info":                         "gauge go_version,version",
	} {
		require.Equal(t, want, there[name], name)
	}
}

// Every metric is documented, in both languages, with its type and labels, and nothing else is.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `(etcdcron_[a-z_]+)` \\| (\\w+)([^|]*) \\|")
	label := regexp.MustCompile("[a-z_]+")
	for _, name := range []string{"metrics.md", "metrics.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		documented := make(map[string]string)
		for _, match := range row.FindAllStringSubmatch(string(text), -1) {
			documented[match[1]] = kindAndLabels(match[2], label.FindAllString(match[3], -1))
		}
		require.Equal(t, families(t), documented, name)
	}
}
