package deploy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rulesFile is a link: go test sees a change of what a test reads only below its own module, and would take the result
// from its cache.
var rulesFile = filepath.Join("testdata", "etcdcron.rules.yaml")

func readRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// withRecorded are the series that there are, with those that the rules record.
func withRecorded(t *testing.T) series {
	t.Helper()
	all := known(t)
	for _, rule := range readRules(t) {
		if rule.Record != "" {
			all[rule.Record] = nil // those that it keeps are of targets, too
		}
	}
	return all
}

func TestRulesSpeakOfWhatThereIs(t *testing.T) {
	t.Parallel()
	all := withRecorded(t)
	severities := []string{"critical", "warning", "info"}
	for _, rule := range readRules(t) {
		require.NoError(t, all.check(parse(t, rule.Expr)), rule.Alert+rule.Record)
		if rule.Alert == "" {
			continue
		}
		require.Contains(t, severities, rule.Labels["severity"], rule.Alert)
		for _, annotation := range []string{"summary", "description"} {
			require.NotEmpty(t, rule.Annotations[annotation], rule.Alert)
		}
	}
}

// scenario is a test of rules in testdata/rules.yaml.
type scenario struct {
	Name        string `yaml:"name"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	At     time.Duration                  `yaml:"at"`
	Alerts map[string][]map[string]string `yaml:"alerts"`
	Values map[string][]float64           `yaml:"values"`
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "rules.yaml"))
	require.NoError(t, err)
	defer f.Close()
	var file struct {
		Tests []scenario `yaml:"tests"`
	}
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	return file.Tests
}

func TestRulesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

// Every alert fires in one of the scenarios: none is there that cannot.
func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	fires := make(map[string]bool)
	for _, s := range scenarios(t) {
		for name := range s.Alerts {
			fires[name] = true
		}
	}
	for _, rule := range readRules(t) {
		require.True(t, rule.Alert == "" || fires[rule.Alert], rule.Alert)
	}
}

func (s *scenario) run(t *testing.T) {
	t.Helper()
	const interval = time.Minute
	all := known(t)
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", model.Duration(interval))
	for _, in := range s.InputSeries {
		name, _, _ := strings.Cut(in.Series, "{")
		require.Contains(t, all, name, "a test of what there is not")
		fmt.Fprintf(&load, "  %s %s\n", in.Series, in.Values)
	}
	suite, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, suite.Close()) }()
	suite.SubqueryInterval = interval
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()),
		Appendable: suite.Storage(), Queryable: suite.Storage(), Context: suite.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
	})
	byName, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, rulesFile)
	require.Empty(t, errs)
	groups := inOrder(t, byName)

	epoch := time.Unix(0, 0).UTC()
	for ts := epoch; !ts.After(epoch.Add(s.At)); ts = ts.Add(interval) {
		suite.WithSamplesTill(ts, func(err error) {
			require.NoError(t, err)
			for _, group := range groups {
				group.Eval(suite.Context(), ts)
				for _, rule := range group.Rules() {
					require.NoError(t, rule.LastError(), rule.Name())
				}
			}
		})
	}
	require.Equal(t, s.expected(), firing(groups))
	for query, want := range s.Values {
		got := []float64{}
		vector, err := rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage())(suite.Context(), query, epoch.Add(s.At))
		require.NoError(t, err)
		for _, sample := range vector {
			got = append(got, sample.F)
		}
		require.InDeltaSlice(t, want, got, 0.001, query)
	}
}

// inOrder are the groups as they stand in the file: what is recorded comes before what uses it.
func inOrder(t *testing.T, byName map[string]*rules.Group) (groups []*rules.Group) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	for _, group := range byName {
		groups = append(groups, group)
		for _, rule := range group.AlertingRules() {
			rule.SetRestored(true)
		}
	}
	at := func(g *rules.Group) int { return strings.Index(string(text), "name: "+g.Name()+"\n") }
	slices.SortFunc(groups, func(a, b *rules.Group) int { return at(a) - at(b) })
	return groups
}

// firing are the alerts that fire, each as name and labels, in order.
func firing(groups []*rules.Group) []string {
	fires := []string{}
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			for _, alert := range rule.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					own := labels.NewBuilder(alert.Labels).Del("severity", labels.AlertName).Labels()
					fires = append(fires, rule.Name()+own.String())
				}
			}
		}
	}
	slices.Sort(fires)
	return fires
}

func (s *scenario) expected() []string {
	want := []string{}
	for name, alerts := range s.Alerts {
		for _, own := range alerts {
			want = append(want, name+labels.FromMap(own).String())
		}
	}
	slices.Sort(want)
	return want
}
