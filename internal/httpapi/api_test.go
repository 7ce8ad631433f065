package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// One instance, everything that can be asked of it; each answer is checked against openapi.yaml by call.
func TestAPI(t *testing.T) {
	t.Parallel()
	s := start(t, nil)

	// What there is.
	var jobs struct {
		Jobs []inspect.Job
		Next string
	}
	s.get("/v1/jobs?limit=2").into(t, &jobs)
	require.Equal(t, []string{bad, gated}, names(jobs.Jobs))
	require.Equal(t, gated, jobs.Next)
	s.get("/v1/jobs?limit=2&cursor="+jobs.Next).into(t, &jobs)
	require.Equal(t, []string{quick}, names(jobs.Jobs))
	require.Empty(t, jobs.Next)
	s.get("/v1/jobs?q=UI&label="+url.QueryEscape("team=billing")+"&paused=false&running=false&failing=false").into(t, &jobs)
	require.Equal(t, []string{quick}, names(jobs.Jobs))
	s.get("/v1/jobs?label=team=other").into(t, &jobs)
	require.Empty(t, jobs.Jobs)

	// A run, from asking for it to its end.
	got := s.post("/v1/jobs/quick/trigger", `{"args": {"month": "2026-11"}, "by": "jo", "reason": "again"}`)
	require.Equal(t, 202, got.status)
	var first asked
	got.into(t, &first)
	require.Equal(t, "requested", first.Status)
	require.Equal(t, "/v1/jobs/quick/runs/"+first.ID, got.header.Get("Location"))
	s.run(quick, first.ID, isOver)
	var run state.Run
	s.get(got.header.Get("Location")).into(t, &run)
	require.Equal(t, state.Succeeded, run.Status)
	require.Equal(t, "done with 2026-11", run.Output)
	require.Equal(t, "jo (HTTP from 127.0.0.1)", run.RequestedBy)
	require.Equal(t, "again", run.RequestWhy)

	retried := s.ask("/v1/jobs/quick/runs/"+first.ID+"/retry", "")
	require.NotEqual(t, first.ID, retried.ID)
	require.Equal(t, "HTTP from 127.0.0.1", s.run(quick, retried.ID, isOver).RequestedBy)
	failed := s.ask("/v1/jobs/bad/trigger", "{}")
	s.run(bad, failed.ID, isOver)
	s.get("/v1/jobs?failing=true").into(t, &jobs)
	require.Equal(t, []string{bad}, names(jobs.Jobs))

	// History.
	var history struct {
		Runs []state.Run
		Next string
	}
	s.get("/v1/jobs/quick/runs?limit=1").into(t, &history)
	require.Equal(t, retried.ID, history.Runs[0].ID)
	require.Equal(t, retried.ID, history.Next)
	s.get("/v1/jobs/quick/runs?cursor="+history.Next).into(t, &history)
	require.Equal(t, first.ID, history.Runs[0].ID)
	require.Empty(t, history.Next)
	s.get("/v1/jobs/quick/runs?trigger=retry&status=succeeded&status=failed&from=2026-01-01T00:00:00Z").into(t, &history)
	require.Len(t, history.Runs, 1)
	s.get("/v1/jobs/quick/runs?to=2026-01-01T00:00:00Z").into(t, &history)
	require.Empty(t, history.Runs)

	// A run that goes on, and its end.
	held := s.ask("/v1/jobs/gated/trigger", "")
	s.run(gated, held.ID, isBegun)
	var details struct {
		Status     state.RunStatus
		Progress   *state.Progress
		Checkpoint *inspect.Checkpoint
		Cancel     *state.Request
		Lock       *state.Lock
	}
	require.Eventually(t, func() bool {
		s.get("/v1/jobs/gated/runs/"+held.ID).into(t, &details)
		return details.Progress != nil && details.Checkpoint != nil
	}, patience, 5*time.Millisecond)
	require.Equal(t, int64(4), details.Progress.Done)
	require.Equal(t, held.ID, details.Lock.Run)
	s.get("/v1/jobs?running=true").into(t, &jobs)
	require.Equal(t, []string{gated}, names(jobs.Jobs))
	var description inspect.Description
	s.get("/v1/jobs/gated").into(t, &description)
	require.Equal(t, held.ID, description.Live[0].ID)
	require.Equal(t, int64(10), description.Live[0].Progress.Total)
	require.Equal(t, "run_not_over", s.post("/v1/jobs/gated/runs/"+held.ID+"/retry", "").code(t))
	require.Equal(t, held.ID, s.ask("/v1/jobs/gated/runs/"+held.ID+"/cancel", `{"reason": "wrong month"}`).ID)
	require.Equal(t, state.Canceled, s.run(gated, held.ID, isOver).Status)
	over := s.post("/v1/jobs/gated/runs/"+held.ID+"/cancel", "")
	require.Equal(t, 409, over.status)
	require.Equal(t, "run_over", over.code(t))
	require.Contains(t, over.body, "it was canceled")

	// Pause, and what is refused then; asking for it once more does no harm.
	var control struct {
		Job    string
		Paused bool
		By     string
	}
	s.post("/v1/jobs/quick/pause", `{"by": "jo", "reason": "month end"}`).into(t, &control)
	require.True(t, control.Paused)
	require.Equal(t, "jo (HTTP from 127.0.0.1)", control.By)
	refused := s.post("/v1/jobs/quick/trigger", "")
	require.Equal(t, 409, refused.status)
	require.Equal(t, "paused", refused.code(t))
	require.Regexp(t, `job quick is paused by jo \(HTTP from 127.0.0.1\) .*: month end`, refused.body)
	require.Contains(t, refused.body, "etcdcron resume quick")
	s.get("/v1/jobs?paused=true").into(t, &jobs)
	require.Equal(t, []string{quick}, names(jobs.Jobs))
	s.post("/v1/jobs/quick/resume", "").into(t, &control)
	require.False(t, control.Paused)

	// Who takes part.
	var leader struct {
		Instance string
		Term     int64
	}
	s.get("/v1/leader").into(t, &leader)
	require.Equal(t, s.scheduler.ID(), leader.Instance)
	var instances struct {
		Instances []struct {
			Instance string
			Leads    bool
		}
	}
	require.Eventually(t, func() bool {
		s.get("/v1/instances").into(t, &instances)
		return len(instances.Instances) == 1 && instances.Instances[0].Leads
	}, patience, 5*time.Millisecond)
	wrong := s.post("/v1/leader/resign", fmt.Sprintf(`{"term": %d}`, leader.Term+1))
	require.Equal(t, 404, wrong.status)
	require.Equal(t, "not_leading", wrong.code(t))
	resigned := s.post("/v1/leader/resign", fmt.Sprintf(`{"term": %d, "reason": "the machine goes"}`, leader.Term))
	require.Equal(t, 202, resigned.status, resigned.body)
	require.Eventually(t, func() bool {
		now, err := s.scheduler.Elector().Leader(t.Context())
		return err == nil && now.Term > leader.Term
	}, patience, 5*time.Millisecond)

	// This instance.
	require.Equal(t, 200, s.get("/livez").status)
	require.Equal(t, 200, s.get("/readyz").status)
	require.Contains(t, s.get("/metrics").body, "etcdcron_leader 0")
	require.Contains(t, s.get("/v1/openapi.yaml").body, "openapi: 3.1.0")
	s.theRest()
	theContract().requireAllSeen(t)
}

// theRest is what needs a request that nobody acts on: of a backfill, while another run of its job goes on.
func (s *service) theRest() {
	t := s.t
	t.Helper()
	held := s.ask("/v1/jobs/gated/trigger", "")
	s.run(gated, held.ID, isBegun)
	body := `"from": "2025-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z", "reason": "the books"`
	preview := s.post("/v1/jobs/gated/backfill", `{`+body+`, "dry_run": true}`)
	require.Equal(t, 200, preview.status)
	require.Contains(t, preview.body, `"total":2,"first":"2025-01-01T00:00:00Z"`)
	back := s.ask("/v1/jobs/gated/backfill", `{`+body+`}`)
	require.Equal(t, "requested", back.Status)
	var page struct {
		Requests []state.Request
		Next     string
	}
	s.get("/v1/requests?limit=10").into(t, &page)
	require.Len(t, page.Requests, 1)
	require.Equal(t, back.ID, page.Requests[0].ID)
	require.Equal(t, "not_found", s.post("/v1/jobs/quick/runs/"+back.ID+"/cancel", "").code(t), "it is of another job")
	require.Equal(t, "withdrawn", s.ask("/v1/jobs/gated/runs/"+back.ID+"/cancel", "").Status)
	s.get("/v1/requests").into(t, &page)
	require.Empty(t, page.Requests)
	s.open <- struct{}{}
	s.run(gated, held.ID, isOver)

	theContract().saw("GET /v1/events 200") // it has no end: events_test.go reads it
}

func names(jobs []inspect.Job) []string {
	all := make([]string, len(jobs))
	for i := range jobs {
		all[i] = jobs[i].Name
	}
	return all
}

// What cannot be done is said with a code, and with what to try.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		code, want         string
	}{
		"no job":           {"GET", "/v1/jobs/quikc", "", 404, "not_found", "did you mean quick?"},
		"no job's runs":    {"GET", "/v1/jobs/none/runs", "", 404, "not_found", "etcdcron jobs lists them"},
		"no job to run":    {"POST", "/v1/jobs/none/trigger", "", 404, "not_found", "there is no job"},
		"no job to pause":  {"POST", "/v1/jobs/none/pause", "", 404, "not_found", "there is no job"},
		"bad name":         {"GET", "/v1/jobs/a%2Fb", "", 400, "bad_input", "bad job name"},
		"no run":           {"GET", "/v1/jobs/quick/runs/20260101T000000Z", "", 404, "not_found", "has no run and no request"},
		"bad run":          {"GET", "/v1/jobs/quick/runs/last", "", 400, "bad_input", "want a form such as"},
		"no run to cancel": {"POST", "/v1/jobs/quick/runs/20260101T000000Z/cancel", "", 404, "not_found", "has no run and no request"},
		"no run to retry":  {"POST", "/v1/jobs/quick/runs/20260101T000000Z/retry", "", 404, "not_found", "has no run and no request"},
		"odd parameter":    {"GET", "/v1/jobs?pausd=true", "", 400, "bad_input", "there is no parameter pausd"},
		"odd flag":         {"GET", "/v1/jobs?paused=yes", "", 400, "bad_input", "use true or false"},
		"twice":            {"GET", "/v1/jobs?limit=1&limit=2", "", 400, "bad_input", "given 2 times"},
		"too many":         {"GET", "/v1/jobs?limit=1001", "", 400, "bad_input", "from 1 to 1000"},
		"too many runs":    {"GET", "/v1/jobs/quick/runs?limit=0", "", 400, "bad_input", "from 1 to 200"},
		"odd status":       {"GET", "/v1/jobs/quick/runs?status=fine", "", 400, "bad_input", "use one of pending, running"},
		"odd time":         {"GET", "/v1/jobs/quick/runs?from=today", "", 400, "bad_input", "write an instant"},
		"odd cursor":       {"GET", "/v1/jobs/quick/runs?cursor=x", "", 400, "bad_input", "want a form such as"},
		"odd label":        {"GET", "/v1/jobs?label=team", "", 400, "bad_input", "as in label=team=billing"},
		"odd escape":       {"GET", "/v1/jobs?q=%zz", "", 400, "bad_input", "invalid URL escape"},
		"unknown field":    {"POST", "/v1/jobs/quick/trigger", `{"arg": {}}`, 400, "bad_input", `unknown field \"arg\"`},
		"two values":       {"POST", "/v1/jobs/quick/trigger", `{} {}`, 400, "bad_input", "more than one JSON value"},
		"no JSON":          {"POST", "/v1/jobs/quick/trigger", `x`, 400, "bad_input", "cannot be read"},
		"a list":           {"POST", "/v1/jobs/quick/trigger", `[]`, 400, "bad_input", "cannot be read: all of it may not be a JSON array"},
		"odd reason":       {"POST", "/v1/jobs/quick/trigger", `{"reason": {}}`, 400, "bad_input", "cannot be read: reason may not be a JSON object"},
		"odd argument":     {"POST", "/v1/jobs/quick/trigger", `{"args": {"a": 1}}`, 400, "bad_input", "cannot be read: args may not be a JSON number"},
		"half a value":     {"POST", "/v1/jobs/quick/trigger", `{`, 400, "bad_input", "cannot be read"},
		"bad argument":     {"POST", "/v1/jobs/quick/trigger", `{"args": {"a-b": "1"}}`, 400, "bad_input", "use letters, digits and '_'"},
		"much argument":    {"POST", "/v1/jobs/quick/trigger", `{"args": {"a": "` + strings.Repeat("x", 5000) + `"}}`, 400, "bad_input", "at most 4096"},
		"no range":         {"POST", "/v1/jobs/quick/backfill", `{"from": "2026-01-01T00:00:00Z"}`, 400, "bad_input", "needs from and to"},
		"backwards":        {"POST", "/v1/jobs/quick/backfill", `{"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}`, 400, "bad_input", "to 2026-01-01T00:00:00Z is before from"},
		"nothing in range": {"POST", "/v1/jobs/gated/backfill", `{"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"}`, 400, "bad_input", "the nearest scheduled times are"},
		"odd method":       {"DELETE", "/v1/jobs/quick", "", 405, "method_not_allowed", "use one of: GET"},
		"get to change":    {"GET", "/v1/jobs/quick/trigger", "", 405, "method_not_allowed", "use one of: POST"},
		"nowhere":          {"GET", "/v2/jobs", "", 404, "no_route", "GET /v1/openapi.yaml"},
		"events of no job": {"GET", "/v1/events?job=a/b", "", 400, "bad_input", "bad job name"},
		"events of what":   {"GET", "/v1/events?run=1", "", 400, "bad_input", "no parameter run"},
	} {
		got := s.call(tc.method, tc.path, tc.body)
		require.Equal(t, tc.status, got.status, "%s: %s", name, got.body)
		require.Equal(t, tc.code, got.code(t), name)
		require.Contains(t, got.body, tc.want, name)
		if tc.status == 405 {
			require.NotEmpty(t, got.header.Get("Allow"), name)
		}
	}
	got := s.post("/v1/jobs/quick/trigger", "{}", "Content-Type", "text/plain")
	require.Equal(t, 415, got.status)
	require.Equal(t, "unsupported_media_type", got.code(t))
	require.Equal(t, 202, s.post("/v1/jobs/quick/trigger", "{}", "Content-Type", "application/json; charset=utf-8").status)
	got = s.get("/v1/events", "Last-Event-ID", "x")
	require.Equal(t, 400, got.status)
}

// The log says of every change who asked for it, also of one that was refused before its body was read.
func TestChangesAreInTheLog(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	s := start(t, func(cfg *httpapi.Config) { cfg.Logger = zap.New(core) })
	require.Equal(t, 200, s.post("/v1/jobs/quick/pause", `{"by": "jo"}`).status)
	require.Equal(t, 409, s.post("/v1/jobs/quick/trigger", `{"by": "al"}`).status)
	require.Equal(t, 413, s.post("/v1/jobs/quick/trigger", strings.Repeat(" ", 70_000)).status)
	require.Equal(t, 415, s.post("/v1/jobs/quick/trigger", "{}", "Content-Type", "text/plain").status)
	require.Equal(t, 400, s.post("/v1/jobs/quick/trigger", `{`).status)
	var by []any
	for _, e := range logs.FilterMessageSnippet("a change was asked for over HTTP").All() {
		by = append(by, e.ContextMap()["by"])
	}
	const plain = "HTTP from 127.0.0.1"
	require.Equal(t, []any{"jo (" + plain + ")", "al (" + plain + ")", plain, plain, plain}, by)
}

// Before etcd has answered, and when it does not any more, a client hears so, and when to try again.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	require.NoError(t, s.etcd.Stop())
	got := s.get("/v1/jobs")
	require.Equal(t, 503, got.status, got.body)
	require.Equal(t, "no_connection", got.code(t))
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Contains(t, got.body, "GET /readyz")
	require.NoError(t, s.etcd.Restart())
	require.Eventually(t, func() bool { return s.get("/v1/jobs").status == 200 }, patience, 50*time.Millisecond)
}
