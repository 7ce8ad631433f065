package deploy

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series are the names of all series that there are, and their labels; of histograms as they are scraped.
type series map[string][]string

// ofTargets are labels that Prometheus adds, or that a configuration mostly does.
var ofTargets = []string{"instance", "job", "pod"}

// registered are the families of a scheduler to which everything has happened.
func registered(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, "v1")
	require.NoError(t, err)
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	failing := state.Incident{Kind: state.AlertFailing}
	status := state.JobStatus{LastSuccessAt: at, NextRunAt: at, Alerting: []state.Incident{failing}}
	run := state.Run{Job: "billing", ID: "r1", Trigger: state.BySchedule, Attempt: 1, Status: state.Succeeded, Reason: state.ReasonOverlap}
	skipped := run
	skipped.Status = state.Skipped
	for _, ev := range []cronrunner.Event{
		cronrunner.Elected{},
		cronrunner.Planned{Job: "billing", Status: status},
		cronrunner.Started{Run: run},
		cronrunner.Retried{Run: run},
		cronrunner.Started{Run: run},
		cronrunner.Recorded{Run: run, Status: status},
		cronrunner.Recorded{Run: skipped, Status: status},
		cronrunner.Alerted{Job: "billing", Incident: failing},
	} {
		m.Observe(ev)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

func known(t *testing.T) series {
	t.Helper()
	all := make(series)
	for _, family := range registered(t) {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		name := family.GetName()
		if family.GetType() == dto.MetricType_HISTOGRAM {
			all[name+"_sum"], all[name+"_count"] = labels, labels
			all[name+"_bucket"] = append(slices.Clone(labels), "le")
			continue
		}
		all[name] = labels
	}
	return all
}

// check says what an expression speaks of that there is not.
func (all series) check(expr parser.Expr) error {
	var faults []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			labels, ok := all[node.Name]
			if !ok {
				faults = append(faults, errors.New("there is no "+node.Name))
				return nil
			}
			for _, m := range node.LabelMatchers {
				if m.Name != "__name__" && !slices.Contains(slices.Concat(labels, ofTargets), m.Name) {
					faults = append(faults, errors.New(node.Name+" has no label "+m.Name))
				}
			}
		case *parser.AggregateExpr:
			labels := all.below(node.Expr)
			for _, name := range node.Grouping {
				if !slices.Contains(labels, name) {
					faults = append(faults, errors.New(node.String()+": there is no label "+name))
				}
			}
		}
		return nil
	})
	return errors.Join(faults...)
}

// below are the labels of all series in an expression.
func (all series) below(expr parser.Expr) []string {
	labels := slices.Clone(ofTargets)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			labels = append(labels, all[selector.Name]...)
		}
		return nil
	})
	return labels
}

func parse(t *testing.T, expr string) parser.Expr {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	return parsed
}
