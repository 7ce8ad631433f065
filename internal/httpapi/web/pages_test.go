package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

func TestPages_Headers(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for _, path := range []string{"/", "/cluster", "/nowhere", "/jobs/none"} {
		a := s.get(path)
		csp := a.header.Get("Content-Security-Policy")
		require.NotContains(t, csp, "unsafe", path)
		require.Contains(t, csp, "default-src 'none'", path)
		require.Contains(t, csp, "frame-ancestors 'none'", path)
		require.Equal(t, "DENY", a.header.Get("X-Frame-Options"), path)
		require.Equal(t, "same-origin", a.header.Get("Referrer-Policy"), path)
		require.Equal(t, "no-store", a.header.Get("Cache-Control"), path)
		require.Equal(t, "text/html; charset=utf-8", a.header.Get("Content-Type"), path)
	}
	for name, address := range s.pages.assets.at {
		a := s.get(address)
		require.Equal(t, http.StatusOK, a.code, name)
		require.Contains(t, a.header.Get("Cache-Control"), "immutable", name)
		require.NotEmpty(t, a.header.Get("Content-Type"), name)
	}
	require.Equal(t, http.StatusNotFound, s.get("/assets/style.0000000000000000.css").code)
}

func TestPages_Empty(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	a := s.get("/")
	require.Equal(t, http.StatusOK, a.code)
	require.Contains(t, a.body, "There are no jobs yet")
	require.Contains(t, a.body, "etcdcron serve -c jobs.yaml", "it says what to do first")
	require.Contains(t, a.body, "Nobody leads")
	a = s.get("/cluster")
	require.Contains(t, a.body, "Nobody leads")
	require.Contains(t, a.body, "etcd&#39;s leader")
	s.job("fresh", state.JobStatus{})
	require.Contains(t, s.get("/jobs/fresh").body, "It runs at its next time, or when you run it now.")
}

// Before etcd is reached, and while it does not answer, the pages say so and what to try.
func TestPages_Unavailable(t *testing.T) {
	t.Parallel()
	s := &site{t: t, pages: New(Config{Etcd: func() (*clientv3.Client, *state.Store, bool) { return nil, nil, false }})}
	a := s.get("/")
	require.Equal(t, http.StatusServiceUnavailable, a.code)
	require.Equal(t, "1", a.header.Get("Retry-After"))
	require.Contains(t, a.body, "Try again in a moment")
	require.Contains(t, a.body, `href="/"`)
	for range maxPages {
		s.pages.places <- struct{}{}
	}
	s.pages.cfg.Etcd = func() (*clientv3.Client, *state.Store, bool) { return nil, nil, true }
	require.Contains(t, s.get("/cluster").body, "too many pages to make at the moment")
}

func TestPages_NotFound(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("daily_billing", state.JobStatus{})
	a := s.get("/jobs/daily_biling")
	require.Equal(t, http.StatusNotFound, a.code)
	require.Contains(t, a.body, "did you mean daily_billing?")
	require.Equal(t, http.StatusNotFound, s.get("/jobs/daily_billing/runs/20261130T120000Z").code)
	require.Equal(t, http.StatusBadRequest, s.get("/jobs/daily_billing/runs/x").code)
	require.Equal(t, http.StatusBadRequest, s.get("/jobs/a%20b").code)
	require.Equal(t, http.StatusNotFound, s.get("/nowhere").code)
}

// What others have written is text on a page, whatever it holds.
func TestPages_Escape(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "\u202e{{.}}"
	at := begins
	s.job("job", state.JobStatus{Live: []string{state.RunID(at.Add(time.Hour))}, Running: 1, LastError: evil, FailedTotal: 1, LastFinishedAt: at, LastStatus: state.RunStatus(evil)}, func(spec *state.Spec) {
		spec.Description, spec.Target, spec.Source, spec.TimeZone, spec.Schedule, spec.Overlap = evil, evil, evil, evil, evil, evil
		spec.Labels = map[string]string{evil: evil}
	})
	s.put(s.store.Keys().Control("job"), state.Control{Paused: true, Reason: evil, By: evil, At: at})
	r := succeeded("job", at, time.Second)
	r.Output, r.Error, r.Reason, r.Instance, r.RequestedBy, r.RequestWhy, r.RetryOf, r.Status, r.Trigger = evil, evil, evil, evil, evil, evil, evil, state.RunStatus(evil), state.Trigger(evil)
	r.Args, r.Attempts = map[string]string{evil: evil}, []state.Attempt{{Attempt: 1, Instance: evil, Error: evil, Reason: evil, StartedAt: at, EndedAt: at}}
	s.run(r)
	live := state.Run{Job: "job", ID: state.RunID(at.Add(time.Hour)), Status: state.Running, Attempt: 1, StartedAt: at, Instance: evil}
	s.run(live)
	s.put(s.store.Keys().Progress("job", live.ID), state.Progress{Done: 1, Total: 2, Message: evil, At: at})
	s.put(s.store.Keys().Request("20261130T120000Z-bx"), state.Request{Kind: state.AskBackfill, ID: "20261130T120000Z-bx", Job: "job", By: evil, Reason: evil, At: at})
	s.put(s.store.Keys().Instance(evil), state.Instance{ID: evil, Host: evil, Address: "javascript:alert(3)", Version: evil})
	s.put(s.store.Keys().Candidates()+"1", state.Instance{ID: evil, Host: evil, Address: evil})

	seen := 0
	for _, path := range []string{
		"/", "/?q=" + url.QueryEscape(evil), "/?sort=%22%3E%3Cscript%3E&state=%22%3E%3Cscript%3E", "/jobs/job", "/jobs/job?said=" + url.QueryEscape(evil),
		"/jobs/job?status=%22%3E%3Cscript%3E&before=%22%3E%3Cscript%3E", "/jobs/job/runs/" + r.ID, "/jobs/job/runs/" + live.ID, "/jobs/job/runs/20261130T120000Z-bx",
		"/cluster", "/jobs/" + url.PathEscape(evil), "/jobs/job/runs/" + url.PathEscape(evil), "/jobs/job/backfill?from=" + url.QueryEscape(evil), "/" + url.PathEscape(evil),
	} {
		a := s.get(path)
		require.Less(t, a.code, 500, "%s: %s", path, a.body)
		require.NotContains(t, a.body, "<script>alert", path)
		require.NotContains(t, a.body, "<img", path)
		require.NotContains(t, a.body, "ZgotmplZ", path)
		require.NotContains(t, a.body, `href="javascript`, path)
		seen += strings.Count(a.body, "alert(1)")
	}
	require.Greater(t, seen, 20, "all of it is there, as text")
}

func TestPages_Languages(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{SucceededTotal: 1, LastFinishedAt: time.Now(), LastStatus: state.Succeeded})
	require.Contains(t, s.get("/").body, "At 09:00, UTC")
	chinese := s.get("/", "Accept-Language", "zh-CN,en;q=0.5")
	require.Contains(t, chinese.body, `<html lang="zh-CN"`)
	require.Contains(t, chinese.body, "每天09:00（UTC）")
	require.Contains(t, chinese.body, "成功")
	chosen := s.get("/?lang=zh&q=a")
	require.Contains(t, chosen.body, `<html lang="zh-CN"`)
	cookie, err := http.ParseSetCookie(chosen.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.Contains(t, s.get("/", "Cookie", cookie.Name+"="+cookie.Value).body, `<html lang="zh-CN"`)
	require.Contains(t, chosen.body, `href="/?lang=en&amp;q=a"`)
	require.Contains(t, s.get("/jobs/none", "Accept-Language", "zh").body, "不存在")
}

func TestPages_Fragment(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{})
	a := s.get("/jobs/a", fragmentHeader, "main")
	require.NotContains(t, a.body, "<html")
	require.Contains(t, a.body, `id="history"`)
	require.Contains(t, a.header.Get("Vary"), fragmentHeader)
	require.Contains(t, s.get("/jobs/a").body, `data-events="/v1/events?job=a"`)
}

func TestJobPage(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	at := time.Now().UTC().Truncate(time.Second).Add(-100 * time.Minute)
	var st state.JobStatus
	for i := range 70 {
		r := succeeded("a", at.Add(time.Duration(i)*time.Minute), time.Duration(1+i)*time.Second)
		if i == 69 {
			r.Status, r.Error = state.Failed, "exit status 9\nand more"
		}
		st = st.Started(&r).Finished(&r)
		s.run(r)
	}
	missed := state.Run{
		Job: "a", ID: state.RunID(at.Add(80 * time.Minute)), ScheduledAt: at.Add(80 * time.Minute), Trigger: state.ByCatchUp, Status: state.Missed, Reason: state.ReasonSuperseded,
		Count: 3, Until: at.Add(82 * time.Minute), FinishedAt: at.Add(83 * time.Minute),
	}
	st = st.NotRun(&missed)
	s.run(missed)
	s.job("a", st, func(spec *state.Spec) {
		spec.Overlap, spec.Limit, spec.CatchUpMax = "queue", 5, 7
		spec.Retry = &state.RetrySpec{MaxAttempts: 3, Initial: state.Duration(time.Second), Max: state.Duration(time.Minute)}
		spec.Jitter, spec.Delay, spec.MaxRuns = state.Duration(time.Minute), state.Duration(20*time.Second), 1000
	})
	a := s.get("/jobs/a")
	require.Equal(t, http.StatusOK, a.code)
	for _, want := range []string{
		"it waits; at most 5 may wait", "at most 3 attempts", "at most 7 of them", "up to 1m; this job is due 20s after", "70 of 1000 runs",
		"a newer time ran instead", "3 times until " + stamp(at.Add(82*time.Minute)), "exit status 9", "timeout 1h, above this scale", "98.6%",
		"a newer time ran instead 3", "failing, 1 in a row",
	} {
		require.Contains(t, a.body, want)
	}
	require.Equal(t, nextTimes, strings.Count(a.body, `&#43;0000</span>`))
	require.Equal(t, runsPerPage, strings.Count(a.body, `data-row="`))

	// Older ones, and some of them only.
	older := s.get("/jobs/a?before=" + state.RunID(at.Add(20*time.Minute)))
	require.Equal(t, 20, strings.Count(older.body, `data-row="`))
	require.Contains(t, older.body, "Newest")
	failed := s.get("/jobs/a?status=failed")
	require.Equal(t, 1, strings.Count(failed.body, `data-row="`))
	require.Contains(t, s.get("/jobs/a?status=canceled").body, "No run matches")
}

func TestRunPage(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{})
	code := 3
	over := succeeded("a", begins, 90*time.Second)
	over.Status, over.Error, over.Output, over.ExitCode, over.LatenessMS = state.Failed, "exit status 3", "one\ntwo\n", &code, 1500
	over.Attempt = 2
	over.Attempts = []state.Attempt{{Attempt: 1, Instance: "b", FencingToken: 5, StartedAt: begins, EndedAt: begins.Add(time.Second), Reason: state.ReasonInstanceLost}}
	s.run(over)
	a := s.get("/jobs/a/runs/" + over.ID)
	for _, want := range []string{"exit status 3", "one\ntwo</pre>", "1m30s", "1.5s", "instance lost", "Run it once more", "Fencing token", "<code>7</code>"} {
		require.Contains(t, a.body, want)
	}
	require.NotContains(t, a.body, "Cancel this run")

	live := state.Run{Job: "a", ID: state.RunID(begins.Add(time.Hour)), Status: state.Running, Attempt: 1, StartedAt: begins, ScheduledAt: begins, Trigger: state.BySchedule}
	s.run(live)
	a = s.get("/jobs/a/runs/" + live.ID)
	require.Contains(t, a.body, "It has not said how far it is.")
	require.Contains(t, a.body, "Cancel this run")
	s.put(s.store.Keys().Progress("a", live.ID), state.Progress{Done: 30, Total: 120, Message: "rows", At: begins.Add(10 * time.Second)})
	s.put(s.store.Keys().Checkpoint("a", live.ID), state.Checkpoint{Value: []byte(`{"at":30}`), UID: "u-a", Run: live.ID, Attempt: 1, At: begins})
	a = s.get("/jobs/a/runs/" + live.ID)
	for _, want := range []string{`max="120" value="30"`, "30 of 120", "25%", "3 a second", "about 30s left", "9 bytes, of attempt 1"} {
		require.Contains(t, a.body, want)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{})
	follow := func(a answer) answer {
		require.Equal(t, http.StatusSeeOther, a.code, a.body)
		return s.get(a.header.Get("Location"))
	}
	// A trigger leads to the run that is to be, which can be taken back.
	triggered := s.post("/jobs/a/trigger", url.Values{"reason": {"now"}})
	page := follow(triggered)
	require.Contains(t, page.body, "The leader starts it within moments.")
	require.Contains(t, page.body, "nobody has acted on it yet")
	requests, err := s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, requests, 1)
	require.Equal(t, "now", requests[0].Reason)
	require.Contains(t, s.get("/jobs/a").body, requests[0].ID)
	require.Contains(t, follow(s.post("/jobs/a/runs/"+requests[0].ID+"/cancel", nil)).body, "withdrawn")

	// A pause is seen, refuses a trigger and says what to try, and ends.
	require.Contains(t, follow(s.post("/jobs/a/pause", url.Values{"reason": {"too loud"}})).body, "too loud")
	refused := s.post("/jobs/a/trigger", nil)
	require.Equal(t, http.StatusConflict, refused.code)
	require.Contains(t, refused.body, "Resume it first.")
	require.Contains(t, refused.body, `href="/jobs/a"`)
	require.NotContains(t, follow(s.post("/jobs/a/resume", nil)).body, "too loud")

	// A run that is over can be done once more, and not ended.
	over := succeeded("a", begins, time.Second)
	s.run(over)
	require.Contains(t, follow(s.post("/jobs/a/runs/"+over.ID+"/retry", nil)).body, "retry of "+over.ID)
	refused = s.post("/jobs/a/runs/"+over.ID+"/cancel", nil)
	require.Equal(t, http.StatusConflict, refused.code)
	require.Contains(t, refused.body, "Run it once more")

	// A backfill is shown before it is asked for.
	preview := s.get("/jobs/a/backfill?from=2026-11-01T00%3A00&to=2026-11-10T00%3A00&reason=again")
	require.Equal(t, http.StatusOK, preview.code)
	for _, want := range []string{"9 scheduled times", "2026-11-01 09:00:00 &#43;0000", "The last is 2026-11-09", `value="again"`} {
		require.Contains(t, preview.body, want)
	}
	require.Contains(t, follow(s.post("/jobs/a/backfill", url.Values{"from": {"2026-11-01T00:00"}, "to": {"2026-11-10T00:00"}})).body, "Asked for the backfill")
	for _, q := range []string{"", "?from=x&to=y", "?from=2026-11-10T00%3A00&to=2026-11-01T00%3A00", "?from=2026-11-01T10%3A00&to=2026-11-01T11%3A00"} {
		bad := s.get("/jobs/a/backfill" + q)
		require.Equal(t, http.StatusBadRequest, bad.code, q)
		require.Contains(t, bad.body, "What to try", q)
	}

	require.Equal(t, http.StatusBadRequest, s.post("/jobs/a/pause", url.Values{"reason": {strings.Repeat("x", maxForm)}}).code, "a form has a bound")
}

func TestExamine(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{NextRunAt: begins})
	require.Contains(t, s.get("/cluster").body, `action="/cluster/examine"`)
	a := s.post("/cluster/examine", nil)
	require.Equal(t, http.StatusOK, a.code, a.body)
	require.Contains(t, a.body, "nobody leads")
	require.Contains(t, a.body, "problem")
	require.Contains(t, a.body, `href="/?lang=zh"`, "a link does not send a form again")
	s.pages.examining.Lock()
	require.Equal(t, http.StatusServiceUnavailable, s.post("/cluster/examine", nil).code, "one at a time")
	s.pages.cfg.Caller = func(*http.Request) Caller { return Caller{Name: "reader token", Known: true} }
	require.Equal(t, http.StatusForbidden, s.post("/cluster/examine", nil).code, "it writes a key")
	require.NotContains(t, s.get("/cluster").body, "examine")
}

// How runs have ended of late takes reading many records, so it is not counted for each page.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	now := begins
	s.pages.now = func() time.Time { return now }
	ran := func(at time.Time, status state.RunStatus) {
		r := succeeded("a", at, 2*time.Second)
		r.Status = status
		s.run(r)
	}
	s.job("a", state.JobStatus{SucceededTotal: 1, Alerting: []state.Incident{{Kind: state.AlertFailing, Run: "x", Since: begins.Add(-time.Hour), Count: 3}}}, func(spec *state.Spec) {
		spec.Alert = &state.AlertSpec{AfterFailures: 3, Missed: true, Overrun: state.Duration(time.Hour), Notify: "hooks.example"}
	})
	ran(begins.Add(-time.Hour), state.Succeeded)
	page := s.get("/jobs/a").body
	require.Contains(t, page, "100% of 1 runs succeeded, mean duration 2s")
	require.Contains(t, page, "Alert: 3 runs in a row have failed, the last one that was tolerated 1h ago.")
	require.Contains(t, page, "after 3 failures in a row, when a time is missed, when a run takes longer than 1h; told to hooks.example")
	ran(begins.Add(-time.Minute), state.Failed)
	require.Contains(t, s.get("/jobs/a").body, "100% of 1 runs", "as it was counted")
	now = now.Add(outcomesAge)
	require.Contains(t, s.get("/jobs/a").body, "50% of 2 runs")
	for i := range 2 * keptOutcomes {
		s.pages.outcomes.keep(string(rune(i)), keptOutcome{})
	}
	require.LessOrEqual(t, len(s.pages.outcomes.kept), keptOutcomes)
}

// Who may only read sees no forms, and what he sends is refused.
func TestForms_Reader(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *Config) {
		c.Caller = func(*http.Request) Caller { return Caller{Name: "reader token", Known: true, SignedIn: true} }
	})
	s.job("a", state.JobStatus{})
	a := s.get("/jobs/a")
	require.NotContains(t, a.body, `action="/jobs/a/trigger"`)
	require.Contains(t, a.body, "sign in with the operator")
	require.Contains(t, a.body, `action="/sign-out"`)
	require.Equal(t, http.StatusForbidden, s.post("/jobs/a/trigger", nil).code)
	requests, err := s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, requests)
}

// many puts n jobs, each with a run.
func (s *site) many(n int) {
	s.t.Helper()
	for i := 0; i < n; i += 20 {
		ops := make([]clientv3.Op, 0, 60)
		for j := i; j < min(i+20, n); j++ {
			name := fmt.Sprintf("job-%05d", j)
			r := succeeded(name, begins.Add(time.Duration(j%50)*time.Minute), time.Duration(1+j%7)*time.Second)
			spec := state.Spec{Name: name, UID: "u", Schedule: "*/5 * * * *", TimeZone: "Asia/Shanghai", Description: "does what it is told to", Labels: map[string]string{"team": fmt.Sprint(j % 10)}}
			st := (state.JobStatus{UID: "u", NextRunAt: time.Now().Add(time.Hour)}).Started(&r).Finished(&r)
			ops = append(ops, clientv3.OpPut(s.store.Keys().Spec(name), encode(s.t, &spec)),
				clientv3.OpPut(s.store.Keys().Status(name), encode(s.t, &st)), clientv3.OpPut(s.store.Keys().Run(name, r.ID), encode(s.t, &r)))
		}
		_, err := s.client.Txn(s.t.Context()).Then(ops...).Commit()
		require.NoError(s.t, err)
	}
}

func TestJobsPage_Large(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	const n = 1000
	s.many(n)
	began := time.Now()
	a := s.get("/")
	t.Logf("first page of %d jobs: %d bytes in %s", n, len(a.body), time.Since(began))
	require.Less(t, len(a.body), 100<<10)
	require.Equal(t, jobsPerPage, strings.Count(a.body, `data-row="`))
	require.Contains(t, a.body, "Jobs 1 to 40 of 1000")
	began = time.Now()
	a = s.get("/")
	t.Logf("again: %d bytes in %s", len(a.body), time.Since(began))
	last := s.get("/?page=25")
	require.Contains(t, last.body, "job-00999")
	require.NotContains(t, last.body, `rel="next"`)
	require.Contains(t, s.get("/?page=1000").body, "job-00999", "beyond the last is the last")
	require.Contains(t, s.get("/?q=team%3D3+00123").body, "Jobs 1 to 1 of 1")
	require.Contains(t, s.get("/?q=nothing").body, "No job matches")
	require.Contains(t, s.get("/?sort=slow").body, "job-00006")
}

// What fills a page with the longest of everything stays below its bound.
func TestJobsPage_LongNames(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for i := range jobsPerPage {
		name := fmt.Sprintf("%s-%02d", strings.Repeat("n", state.MaxJobName-3), i)
		var st state.JobStatus
		for j := range 30 {
			r := succeeded(name, begins.Add(time.Duration(j)*time.Minute), time.Duration(j)*time.Second)
			r.Status = ended[j%3]
			st = st.Started(&r).Finished(&r)
			s.run(r)
		}
		st.Queue, st.Pending, st.ConsecutiveFailures = []string{"x"}, 1, 3
		s.job(name, st, func(spec *state.Spec) { spec.Description = strings.Repeat("d", 100) })
	}
	for {
		a := s.get("/")
		require.Less(t, len(a.body), 140<<10)
		if !strings.Contains(a.body, "data-unread") { // it is read bit by bit
			t.Logf("the longest page: %d bytes", len(a.body))
			return
		}
	}
}

func encode(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	require.NoError(tb, err)
	return string(text)
}

// BenchmarkJobsPage is the first page of many jobs: cold, with nothing kept in memory, and as an open page asks for it.
func BenchmarkJobsPage(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		s := open(b, nil)
		s.many(n)
		for name, fresh := range map[string]bool{"cold": true, "warm": false} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				size := 0
				for b.Loop() {
					if fresh {
						s.pages.roster.read, s.pages.strips = time.Time{}, newStrips()
					}
					size = len(s.get("/").body)
				}
				b.ReportMetric(float64(size), "bytes/page")
			})
		}
	}
}
