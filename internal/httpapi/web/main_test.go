package web

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is the pages of an etcd in which nobody leads.
type site struct {
	t      testing.TB
	client *clientv3.Client
	store  *state.Store
	pages  *Pages
}

func open(tb testing.TB, change func(*Config)) *site {
	tb.Helper()
	s := &site{t: tb, client: etcdtest.Start(tb).Client(tb)}
	keys, err := state.NewKeys("", "")
	require.NoError(tb, err)
	s.store = state.NewStore(s.client, keys, state.StoreConfig{})
	cfg := Config{Etcd: func() (*clientv3.Client, *state.Store, bool) { return s.client, s.store, true }}
	if change != nil {
		change(&cfg)
	}
	s.pages = New(cfg)
	return s
}

func (s *site) put(key string, value any) {
	s.t.Helper()
	text, err := json.Marshal(value)
	require.NoError(s.t, err)
	_, err = s.client.Put(s.t.Context(), key, string(text))
	require.NoError(s.t, err)
}

// job puts a job with a status.
func (s *site) job(name string, st state.JobStatus, change ...func(*state.Spec)) {
	s.t.Helper()
	spec := state.Spec{
		Name: name, UID: "u-" + name, Schedule: "0 9 * * *", TimeZone: "UTC", Overlap: "skip", CatchUp: "latest", Recovery: "resume",
		Timeout: state.Duration(time.Hour), LockTTL: state.Duration(15 * time.Second), Grace: state.Duration(time.Second),
	}
	for _, c := range change {
		c(&spec)
	}
	st.UID = spec.UID
	s.put(s.store.Keys().Spec(name), &spec)
	s.put(s.store.Keys().Status(name), &st)
}

func (s *site) run(r state.Run) { s.put(s.store.Keys().Run(r.Job, r.ID), &r) }

// answer is what came of a request.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (s *site) get(path string, headers ...string) answer {
	s.t.Helper()
	return s.ask(httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, path, http.NoBody), headers)
}

func (s *site) post(path string, form url.Values, headers ...string) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.ask(r, headers)
}

func (s *site) ask(r *http.Request, headers []string) answer {
	s.t.Helper()
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(s.t, err)
	return answer{w.Code, w.Header(), string(body)}
}

// begins is when the runs of tests begin.
var begins = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// succeeded is a run that has.
func succeeded(job string, at time.Time, took time.Duration) state.Run {
	return state.Run{
		Job: job, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Succeeded, Attempt: 1,
		StartedAt: at, FinishedAt: at.Add(took), DurationMS: took.Milliseconds(), Instance: "a", Term: 3, FencingToken: 7,
	}
}
