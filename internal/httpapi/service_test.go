package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

const patience = 40 * time.Second

// service is an etcd, a scheduler on it that leads, and a server that answers of it.
type service struct {
	t         *testing.T
	etcd      *etcdtest.Cluster
	client    *clientv3.Client
	store     *state.Store
	scheduler *cronrunner.Scheduler
	server    *httpapi.Server
	url       string
	web       *http.Client
	open      chan struct{} // what lets the runs of gated end, one each
}

// The jobs of a service. None is due by itself while a test goes on.
const (
	quick = "quick" // succeeds at once
	bad   = "bad"   // fails
	gated = "gated" // runs until let go, with a progress and a checkpoint
)

func jobsOf(s *service) []cronrunner.Job {
	return []cronrunner.Job{
		{Name: quick, Schedule: "0 * * * *", Labels: map[string]string{"team": "billing"}, Start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Handler: func(_ context.Context, run *cronrunner.Run) error {
			run.SetOutput("done with " + run.Args()["month"])
			return nil
		}},
		{Name: bad, Schedule: "0 0 1 1 *", Handler: func(context.Context, *cronrunner.Run) error { return cronrunner.Permanent(io.ErrUnexpectedEOF) }},
		{Name: gated, Schedule: "0 0 1 1 *", Handler: func(ctx context.Context, run *cronrunner.Run) error {
			run.Progress(4, 10, "accounts")
			if err := run.Checkpoint(ctx, 4); err != nil {
				return err
			}
			select {
			case <-s.open:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}},
	}
}

// start runs a service until the test ends. With change its server is another than one that asks nothing of anybody.
func start(t *testing.T, change func(*httpapi.Config)) *service {
	t.Helper()
	s := startWithout(t)
	s.schedule(jobsOf(s)...)
	s.listen(change)
	s.server.Connect(s.client, s.store)
	return s
}

// startWithout starts an etcd alone.
func startWithout(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, etcd: etcdtest.Start(t), open: make(chan struct{})}
	s.client = s.etcd.Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	s.store = state.NewStore(s.client, keys, state.StoreConfig{})
	return s
}

func (s *service) schedule(jobs ...cronrunner.Job) {
	s.t.Helper()
	var err error
	s.scheduler, err = cronrunner.New(s.etcd.Client(s.t), cronrunner.Config{InstanceID: "a", DrainTimeout: -1, LeaderTTL: 2 * time.Second})
	require.NoError(s.t, err)
	for _, j := range jobs {
		require.NoError(s.t, s.scheduler.Register(j))
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.scheduler.Run(ctx) }()
	s.t.Cleanup(func() { stop(); require.NoError(s.t, <-ended) })
	require.Eventually(s.t, func() bool {
		for _, j := range jobs {
			if def, err := s.store.Job(s.t.Context(), j.Name); err != nil || def.SpecRev == 0 {
				return false
			}
		}
		return true
	}, patience, 5*time.Millisecond)
}

// listen serves without an etcd so far.
func (s *service) listen(change func(*httpapi.Config)) {
	s.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "etcdcron_leader", Help: "For this test."}))
	cfg := httpapi.Config{Health: fixed{Instance: "a", Role: httpapi.RoleLeader}, Metrics: reg}
	if change != nil {
		change(&cfg)
	}
	s.server = httpapi.New(cfg)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	s.url = "http://" + ln.Addr().String()
	if cfg.TLS != nil {
		s.url = "https://" + ln.Addr().String()
	}
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ln) }()
	transport := &http.Transport{}
	s.web = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s.server.Shutdown(ctx)
		require.ErrorIs(s.t, <-served, http.ErrServerClosed)
	})
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// into decodes the body.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), v), a.body)
}

// problem is what an answer says is wrong.
type problem struct {
	Error struct{ Code, Message, Hint string }
}

// code is the code of an answer that says what is wrong.
func (a answer) code(t *testing.T) string {
	t.Helper()
	var p problem
	a.into(t, &p)
	require.NotEmpty(t, p.Error.Message)
	return p.Error.Code
}

// call sends a request, with JSON if body is not "", and checks that the answer is as it is described. Headers are
// name and value, one after the other.
func (s *service) call(method, path, body string, headers ...string) answer {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	require.NoError(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.web.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	theContract().check(s.t, req, resp, all)
	require.Equal(s.t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
	for name := range resp.Header {
		require.NotContains(s.t, name, "Access-Control-", "there is no CORS")
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(all)}
}

func (s *service) get(path string, headers ...string) answer {
	s.t.Helper()
	return s.call(http.MethodGet, path, "", headers...)
}

func (s *service) post(path, body string, headers ...string) answer {
	s.t.Helper()
	return s.call(http.MethodPost, path, body, headers...)
}

// asked is what comes back from asking for something.
type asked struct {
	Job, ID, Status, Reason string
}

// ask asks for something that is not refused.
func (s *service) ask(path, body string) (a asked) {
	s.t.Helper()
	got := s.post(path, body)
	require.Less(s.t, got.status, 300, got.body)
	got.into(s.t, &a)
	return a
}

// run waits until a run is as it should be.
func (s *service) run(job, id string, ok func(*state.Run) bool) (run state.Run) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		got, _, err := s.store.Run(s.t.Context(), job, id)
		run = got
		return err == nil && ok(&run)
	}, patience, 5*time.Millisecond)
	return run
}

func isOver(r *state.Run) bool  { return r.Status.Final() }
func isBegun(r *state.Run) bool { return r.Status == state.Running }

// httpGet is what a server without anything around it answers.
func httpGet(path string) []byte {
	rec := httptest.NewRecorder()
	httpapi.New(httpapi.Config{Health: fixed{}, Metrics: prometheus.NewRegistry()}).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	return rec.Body.Bytes()
}
