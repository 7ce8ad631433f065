package tally_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/tally"
)

// shown is what the HTTP API answers of what a chaos has left.
type shown struct {
	t       *testing.T
	handler http.Handler
}

func (c *chaos) shown() *shown {
	server := httpapi.New(httpapi.Config{Health: ready{}, Metrics: prometheus.NewRegistry()})
	server.Connect(c.client, c.store)
	c.t.Cleanup(func() { server.Shutdown(context.WithoutCancel(c.t.Context())) })
	return &shown{t: c.t, handler: server.Handler()}
}

type ready struct{}

func (ready) Ready(context.Context) httpapi.Readiness { return httpapi.Readiness{} }

func (s *shown) get(path string, into any) {
	s.t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, path, http.NoBody)
	request.Host = "localhost"
	s.handler.ServeHTTP(answer, request)
	require.Equal(s.t, http.StatusOK, answer.Code, answer.Body.String())
	require.NoError(s.t, json.Unmarshal(answer.Body.Bytes(), into))
}

// compare holds what is shown of a job against its records, in the order of tally.Read: its description, which the command
// describe and the page show too, its line in the list of jobs, and its history.
func (s *shown) compare(job string, records []state.Run) {
	t := s.t
	t.Helper()
	counted := tally.Count(records)
	var d inspect.Description
	s.get("/v1/jobs/"+job, &d)
	require.Empty(t, tally.Differences(d.Status, records), job)
	newest := slices.SortedFunc(slices.Values(records), func(a, b state.Run) int { return strings.Compare(b.ID, a.ID) })
	require.Equal(t, idsOf(newest[:len(d.Runs)]), idsOf(d.Runs), job)
	require.Empty(t, d.Live, job)
	for _, o := range d.Outcomes { // all of it was within the last hour
		require.Equal(t, counted.SucceededTotal, o.Succeeded, job)
		require.Equal(t, counted.FailedTotal, o.Failed, job)
		if rate, ok := counted.SuccessRate(); ok {
			require.InDelta(t, rate, *o.SuccessRate, 1e-9, job)
			require.InDelta(t, counted.MeanDurationMS, *o.MeanDurationMS, 1e-6*(1+counted.MeanDurationMS), job)
		}
		require.GreaterOrEqual(t, time.Duration(o.Window), 24*time.Hour)
	}

	var list struct {
		Jobs []inspect.Job `json:"jobs"`
	}
	s.get("/v1/jobs?q="+job, &list)
	i := slices.IndexFunc(list.Jobs, func(j inspect.Job) bool { return j.Name == job })
	require.GreaterOrEqual(t, i, 0, job)
	line := list.Jobs[i]
	require.Equal(t, [4]int64{counted.SucceededTotal, counted.FailedTotal, counted.SkippedTotal, counted.MissedTotal},
		[4]int64{line.SucceededTotal, line.FailedTotal, line.SkippedTotal, line.MissedTotal}, job)
	require.Equal(t, [2]int{0, 0}, [2]int{line.Running, line.Pending}, job)

	var history []state.Run
	for next := ""; ; {
		var page struct {
			Runs []state.Run `json:"runs"`
			Next string      `json:"next"`
		}
		s.get("/v1/jobs/"+job+"/runs?limit=50&cursor="+next, &page)
		history = append(history, page.Runs...)
		if next = page.Next; next == "" {
			break
		}
	}
	require.Equal(t, idsOf(newest), idsOf(history), job)
	require.Equal(t, newest, history, job)
}

func idsOf(runs []state.Run) []string {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	return ids
}
