package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	Type    string `json:"type"`
	GridPos struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "etcdcron.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// plain is an expression as Prometheus gets it, with Grafana's variables replaced.
func plain(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(expr)
}

func TestTheDashboardSpeaksOfWhatThereIs(t *testing.T) {
	t.Parallel()
	all := withRecorded(t)
	legend := regexp.MustCompile(`{{(\w+)}}`)
	used := make(map[string]bool)
	for _, p := range readDashboard(t).Panels {
		require.True(t, p.Type == "row" || len(p.Targets) > 0, p.Title)
		for _, target := range p.Targets {
			expr := parse(t, plain(target.Expr))
			require.NoError(t, all.check(expr), p.Title)
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, all.below(expr), label[1], "%s: %s", p.Title, target.LegendFormat)
			}
			for name := range all {
				if strings.Contains(target.Expr, name) {
					used[regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(name, "")] = true
				}
			}
		}
	}
	for _, family := range registered(t) {
		require.True(t, used[family.GetName()], "the dashboard does not show %s", family.GetName())
	}
	definition := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	variables := []string{}
	for _, v := range readDashboard(t).Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			match := definition.FindStringSubmatch(v.Definition)
			require.NotNil(t, match, v.Definition)
			require.Contains(t, all[match[1]], match[2], v.Definition)
		}
	}
	require.Equal(t, []string{"datasource", "job"}, variables)
}

func TestTheDashboardIsWellFormed(t *testing.T) {
	t.Parallel()
	panels := readDashboard(t).Panels
	ids := []int{}
	for i, p := range panels {
		require.NotContains(t, ids, p.ID, p.Title)
		ids = append(ids, p.ID)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		overlaps := slices.ContainsFunc(panels[i+1:], func(q panel) bool {
			return p.GridPos.X < q.GridPos.X+q.GridPos.W && q.GridPos.X < p.GridPos.X+p.GridPos.W &&
				p.GridPos.Y < q.GridPos.Y+q.GridPos.H && q.GridPos.Y < p.GridPos.Y+p.GridPos.H
		})
		require.False(t, overlaps, "%s lies over another panel", p.Title)
	}
}
