package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// target is a server that a webhook is sent to.
func target(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

// send makes one call of w.
func send(ctx context.Context, t *testing.T, w Webhook, run attempt) error {
	t.Helper()
	e := New(nil)
	defer e.Close()
	return w.do(ctx, run, zap.NewNop(), e.transports, &ownTransport{})
}

func TestWebhookTellsOfItsRun(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		fmt.Fprint(w, "charged\n")
	})
	run := &fakeRun{args: map[string]string{"month": "2026-11"}, checkpoint: json.RawMessage(`{"page":7}`)}
	require.NoError(t, send(t.Context(), t, Webhook{URL: server.URL + "/charge?all=1"}, run))
	require.Equal(t, "charged\n", run.output)
	require.Nil(t, run.exitCode)
	require.Equal(t, "POST /charge?all=1", got.Method+" "+got.URL.String())
	require.JSONEq(t, `{"job":"billing","run_id":"20261130T010000Z","scheduled_at":"2026-11-30T01:00:00Z","attempt":1,"fencing_token":7,`+
		`"trigger":"schedule","args":{"month":"2026-11"},"checkpoint":{"page":7}}`, body)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "etcdcron",
		"Idempotency-Key": "billing/20261130T010000Z", "Etcdcron-Job": "billing", "Etcdcron-Run-Id": "20261130T010000Z",
		"Etcdcron-Scheduled-At": "2026-11-30T01:00:00Z", "Etcdcron-Attempt": "1", "Etcdcron-Fencing-Token": "7",
		"Accept-Encoding": "",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}

	require.NoError(t, send(t.Context(), t, Webhook{URL: server.URL}, &fakeRun{}))
	require.Contains(t, body, `"args":{},"checkpoint":null}`)
}

func TestWebhookMethodsAndBodies(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := target(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	})
	text, object, nothing := "a<b", `{"a": 1}`, ""
	for name, tc := range map[string]struct {
		webhook     Webhook
		body, kind  string
		wantsItsRun bool
	}{
		"GET":       {Webhook{Method: "GET"}, "", "", false},
		"HEAD":      {Webhook{Method: "HEAD"}, "", "", false},
		"DELETE":    {Webhook{Method: "DELETE"}, "", "", false},
		"PUT":       {Webhook{Method: "PUT"}, "", "application/json", true},
		"PATCH":     {Webhook{Method: "PATCH"}, "", "application/json", true},
		"text":      {Webhook{Body: &text}, text, "text/plain; charset=utf-8", false},
		"JSON":      {Webhook{Body: &object}, object, "application/json", false},
		"no body":   {Webhook{Body: &nothing}, "", "text/plain; charset=utf-8", false},
		"own kind":  {Webhook{Body: &text, Headers: map[string]HeaderValue{"content-type": {Text: "text/html"}}}, text, "text/html", false},
		"own agent": {Webhook{Method: "GET", Headers: map[string]HeaderValue{"User-Agent": {Text: "me"}, "X-A": {Text: "é\tb"}}}, "", "", false},
	} {
		tc.webhook.URL = server.URL
		require.NoError(t, send(t.Context(), t, tc.webhook, &fakeRun{}), name)
		if tc.wantsItsRun {
			require.Contains(t, body, `"job":"billing"`, name)
		} else {
			require.Equal(t, tc.body, body, name)
		}
		require.Equal(t, tc.kind, got.Header.Get("Content-Type"), name)
		require.Equal(t, tc.webhook.method(), got.Method)
		if name == "own agent" {
			require.Equal(t, []string{"me", "é\tb"}, []string{got.Header.Get("User-Agent"), got.Header.Get("X-A")})
		}
	}
}

func TestWebhookStatuses(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.URL.Path[1:], &code) //nolint:errcheck // a code of 0 panics
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			fmt.Fprint(w, "why\n")
		}
	})
	for what, want := range map[string]struct {
		text      string // "" for success
		permanent bool
	}{
		"/200": {}, "/201": {}, "/202": {}, "/204": {}, "/299": {},
		"/304": {"answered 304 Not Modified", true},
		"/400": {"answered 400 Bad Request", true},
		"/401": {"answered 401 Unauthorized", true},
		"/404": {"answered 404 Not Found", true},
		"/409": {"answered 409 Conflict", true},
		"/499": {"answered 499", true},
		"/408": {"answered 408 Request Timeout", false},
		"/425": {"answered 425 Too Early", false},
		"/429": {"answered 429 Too Many Requests", false},
		"/500": {"answered 500 Internal Server Error", false},
		"/503": {"answered 503 Service Unavailable", false},
		"/599": {"answered 599", false},
	} {
		run := &fakeRun{}
		err := send(t.Context(), t, Webhook{URL: server.URL + what}, run)
		if want.text == "" {
			require.NoError(t, err, what)
		} else {
			require.EqualError(t, err, want.text)
			require.Equal(t, want.permanent, isPermanent(err), what)
		}
		if what != "/204" && what != "/304" {
			require.Equal(t, "why\n", run.output, what)
		}
	}
	err := send(t.Context(), t, Webhook{URL: server.URL + "/503?after=7"}, &fakeRun{})
	require.Equal(t, cronrunner.RetryAfter(fmt.Errorf("answered %s", "503 Service Unavailable"), 7*time.Second), err)
	require.True(t, isPermanent(send(t.Context(), t, Webhook{URL: server.URL + "/403?after=7"}, &fakeRun{})), "a Retry-After changes nothing")
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "1.5": 0, "0": 0, " 7 ": 7 * time.Second,
		"86401": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour,
		"Mon, 30 Nov 2026 01:02:00 GMT":  2 * time.Minute,
		"Monday, 30-Nov-26 01:02:00 GMT": 2 * time.Minute,
		"Mon Nov 30 01:02:00 2026":       2 * time.Minute,
		"Mon, 30 Nov 2026 00:00:00 GMT":  0,
	} {
		require.Equal(t, want, retryAfter(text, now), text)
	}
}

func TestWebhookIsCanceled(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{"before an answer": "", "in the middle of one": "begun\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, left := make(chan struct{}), make(chan struct{})
			server := target(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
				if begin != "" {
					fmt.Fprint(w, begin)
					w.(http.Flusher).Flush()
				}
				close(asked)
				<-r.Context().Done()
				close(left)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-asked
				time.Sleep(20 * time.Millisecond)
				cancel(errStop)
			}()
			run := &fakeRun{}
			err := send(ctx, t, Webhook{URL: server.URL}, run)
			require.ErrorIs(t, err, errStop)
			require.EqualError(t, err, "stopped: the test says stop")
			require.Equal(t, begin, run.output)
			<-left
		})
	}
}

func TestWebhookCheck(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://h": "", "http://127.0.0.1:2390/x?y=z": "", "https://[::1]:8443/é": "",
		"":                       "is missing",
		"h/x":                    "it must begin with https:// or http://",
		"HTTPS://h":              "",
		"file:///etc/passwd":     "it must begin with",
		"https://":               "has no host",
		"https://:443/":          "has no host",
		"https://jo@h":           "has a user or password in it",
		"https://jo:p@h":         "has a user or password in it",
		"https://h/#x":           "has a fragment",
		"https://h/%zz-s3cret":   "a % in it is followed by no two hexadecimal digits",
		"https://h:port-s3cret/": "cannot be read",
		"https://h/\n":           "cannot be read",
		"https://h/" + strings.Repeat("x", maxURL): "at most 2048 are allowed",
	} {
		err := Webhook{URL: address}.Check()
		if want == "" {
			require.NoError(t, err, address)
			continue
		}
		require.ErrorIs(t, err, ErrBadWebhook)
		require.ErrorContains(t, err, "webhook.url: ")
		require.ErrorContains(t, err, want)
	}
	bad := Webhook{URL: "x", Method: "TRACE", Key: "/k", CACert: "ca", Headers: map[string]HeaderValue{"A": {Text: "a", Env: "B"}}}.Check()
	for _, fault := range []string{"webhook.url: ", "webhook.method: ", "webhook.key: ", "webhook.ca: ", "webhook.headers: A: "} {
		require.ErrorContains(t, bad, fault)
	}
	require.True(t, isPermanent(send(t.Context(), t, Webhook{}, &fakeRun{})))
}
