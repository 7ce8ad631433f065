package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

func TestMain(m *testing.M) {
	// net/http lingers half a second on a connection that it refused.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// fixed is a health that does not change.
type fixed httpapi.Readiness

func (f fixed) Ready(context.Context) httpapi.Readiness { return httpapi.Readiness(f) }

func ask(t *testing.T, h httpapi.Health, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "etcdcron_leader", Help: "For this test."}))
	srv := httpapi.New(httpapi.Config{Health: h, Metrics: reg})
	rec := httptest.NewRecorder()
	srv.Handler().ServeHTTP(rec, httptest.NewRequest(method, "http://localhost"+path, nil))
	return rec
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	leads := fixed{Instance: "a", Role: httpapi.RoleLeader, Leader: "a"}
	follows := fixed{Instance: "b", Role: httpapi.RoleFollower, Leader: "a"}
	lost := fixed{Instance: "b", Role: httpapi.RoleFollower, Reason: "etcd does not answer", Hint: "is it running?"}
	for _, tc := range []struct {
		name         string
		health       httpapi.Health
		method, path string
		code         int
		body         string
	}{
		{"live", leads, "GET", "/livez", 200, `{"status":"alive"}`},
		{"live without etcd", lost, "GET", "/livez", 200, `{"status":"alive"}`},
		{"leader", leads, "GET", "/readyz", 200, `{"status":"ready","instance":"a","role":"leader","leader":"a"}`},
		{"follower", follows, "GET", "/readyz", 200, `{"status":"ready","instance":"b","role":"follower","leader":"a"}`},
		{
			"not ready", lost, "GET", "/readyz", 503,
			`{"status":"not_ready","instance":"b","role":"follower","reason":"etcd does not answer","hint":"is it running?"}`,
		},
		{"metrics", leads, "GET", "/metrics", 200, "etcdcron_leader 0"},
		{"metrics without etcd", lost, "GET", "/metrics", 200, "etcdcron_leader 0"},
		{"only reading", leads, "POST", "/readyz", 405, `{"error":{"code":"method_not_allowed"`},
		{"no debug routes", leads, "GET", "/debug/pprof/", 404, ""},
		{"without etcd", leads, "GET", "/v1/jobs", 503, `{"error":{"code":"unavailable","message":"this instance has not reached etcd yet"`},
		{"events without etcd", leads, "GET", "/v1/events", 503, `"code":"unavailable"`},
		{"no such path", leads, "GET", "/nowhere", 404, `{"error":{"code":"no_route","message":"there is nothing at /nowhere"`},
		{"the page without etcd", leads, "GET", "/", 503, "<!doctype html>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := ask(t, tc.health, tc.method, tc.path)
			require.Equal(t, tc.code, rec.Code)
			require.Contains(t, rec.Body.String(), tc.body)
			require.Equal(t, "nosniff", rec.Header().Get("X-Content-Type-Options"))
			require.Empty(t, rec.Header().Get("Access-Control-Allow-Origin"))
			if strings.HasPrefix(tc.body, "{") {
				require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
				require.True(t, json.Valid(rec.Body.Bytes()))
			}
		})
	}
}

// A request with endless headers is refused, not collected.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	srv := httpapi.New(httpapi.Config{Health: fixed{}, Metrics: prometheus.NewRegistry()})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	defer func() {
		srv.Shutdown(t.Context())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}()

	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	go func() { // until the server has had enough
		_, _ = fmt.Fprintf(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Much: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
}
