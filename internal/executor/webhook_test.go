package executor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
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

func TestWebhookRedirects(t *testing.T) {
	t.Parallel()
	type request struct{ method, path, body, secret string }
	var seen []request
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	other := target(t, func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") })
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, request{r.Method, r.URL.Path, string(b), r.Header.Get("Authorization")})
		if r.URL.Path == "/end" {
			fmt.Fprint(w, "end")
			return
		}
		var code int
		var to string
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &code); err == nil {
			to = r.URL.Query().Get("to")
		}
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(code)
	})
	port := server.Listener.Addr().(*net.TCPAddr).Port
	call := func(method string, code int, to string) error {
		seen = nil
		body := "text"
		w := Webhook{
			URL: fmt.Sprintf("%s/%d?to=%s", server.URL, code, url.QueryEscape(to)), Method: method,
			Headers: map[string]HeaderValue{"Authorization": {Text: "Bearer s3cret"}},
		}
		if method == "POST" {
			w.Body = &body
		}
		return send(t.Context(), t, w, &fakeRun{})
	}
	for _, code := range []int{307, 308} {
		require.NoError(t, call("POST", code, "/end"))
		require.Equal(t, request{"POST", "/end", "text", "Bearer s3cret"}, seen[1])
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		require.NoError(t, call("GET", code, "/end"))
		require.Equal(t, request{"GET", "/end", "", "Bearer s3cret"}, seen[1])
	}
	for _, tc := range []struct {
		method string
		code   int
		to     string
		want   string
	}{
		{"POST", 301, "/end?a=b", "answered 301 Moved Permanently, a redirect to " + server.URL + "/end?…, which is not followed: it would turn the POST into a GET; write the final url into the jobs file"},
		{"POST", 302, "/end", "it would turn the POST into a GET"},
		{"PUT", 303, "/end", "it would turn the PUT into a GET"},
		{"DELETE", 302, "/end", "it would turn the DELETE into a GET"},
		{"POST", 307, other.URL, "it is another port"},
		{"POST", 307, fmt.Sprintf("http://localhost:%d/end", port), "it is another host"},
		{"POST", 307, "//evil.example/end", "it is another host"},
		{"POST", 308, secure.URL, "it is another port"},
		{"POST", 307, "ftp://127.0.0.1/", "it is not as safe as http"},
		{"POST", 307, "", "answered 307 Temporary Redirect without a Location that can be read"},
		{"POST", 307, "http://[::1", "answered 307 Temporary Redirect without a Location that can be read"},
	} {
		err := call(tc.method, tc.code, tc.to)
		require.ErrorContains(t, err, tc.want)
		require.True(t, isPermanent(err))
		require.Len(t, seen, 1)
	}
	loop := fmt.Sprintf("%s/307?to=", server.URL)
	err := call("POST", 307, loop+url.QueryEscape(loop+url.QueryEscape(loop+url.QueryEscape(loop+url.QueryEscape(loop+url.QueryEscape(loop+"/end"))))))
	require.ErrorContains(t, err, "which is not followed: it is one more than 5")
	require.Len(t, seen, 6)
}

// A redirect to TLS is followed between the default ports, and never the other way.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		followed bool
	}{
		{"http://h/a", "https://h/b", true},
		{"http://H/a", "https://h:443/b", true},
		{"http://h:8080/a", "http://h:8080/b?c=d", true},
		{"http://h:8080/a", "https://h:8443/b", false},
		{"https://h/a", "http://h/b", false},
		{"https://h/a", "https://h.evil/b", false},
	} {
		from, err := url.Parse(tc.from)
		require.NoError(t, err)
		resp := &http.Response{StatusCode: http.StatusPermanentRedirect, Header: http.Header{"Location": {tc.to}}, Request: &http.Request{URL: from}}
		_, err = (&call{}).follow(resp, 0)
		require.Equal(t, tc.followed, err == nil, "%s to %s: %v", tc.from, tc.to, err)
	}
}

func TestWebhookThatIsNotThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	listener.Close()
	err = send(t.Context(), t, Webhook{URL: "http://" + address + "/x?token=hunter2hunter2"}, &fakeRun{})
	require.EqualError(t, err, "no answer from "+address+": dial tcp "+address+": connect: connection refused")
	require.False(t, isPermanent(err))
}

// A connection that breaks is an attempt that failed, on record: net/http must not try again by itself.
func TestWebhookIsSentOnce(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := target(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	})
	e := New(nil)
	defer e.Close()
	w := Webhook{URL: server.URL}
	require.NoError(t, w.do(t.Context(), &fakeRun{}, zap.NewNop(), e.transports, nil))
	err := w.do(t.Context(), &fakeRun{}, zap.NewNop(), e.transports, nil) // on the same connection
	require.ErrorContains(t, err, "no answer from ")
	require.Equal(t, int64(2), requests.Load())
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

func TestWebhookAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		block := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	for what, limit := range map[string]int{"/": maxAnswer, "/refused": maxRefusal} {
		run := &fakeRun{}
		err := send(t.Context(), t, Webhook{URL: server.URL + what}, run)
		require.Equal(t, what == "/", err == nil, "%v", err)
		require.True(t, strings.HasPrefix(run.output, fmt.Sprintf("[cut: the end of %d bytes]\nxxx", limit)), "%.60q", run.output)
		require.Len(t, run.output, state.MaxOutput)
	}
}

// An error page that never ends does not hold the job.
func TestWebhookSlowRefusal(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "bad")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	run := &fakeRun{}
	begun := time.Now()
	err := send(t.Context(), t, Webhook{URL: server.URL}, run)
	require.EqualError(t, err, "answered 502 Bad Gateway")
	require.Equal(t, "bad", run.output)
	require.Less(t, time.Since(begun), patience)
}

func TestWebhookAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lines" {
			w.Header().Set("Content-Type", ndjson)
			fmt.Fprint(w, `{"output":"a"}`+"\n"+`{"outp`)
		} else {
			fmt.Fprint(w, "half")
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	for what, want := range map[string]string{"/": "the answer 200 OK broke off after 4 bytes: unexpected EOF", "/lines": "the answer broke off: unexpected EOF"} {
		err := send(t.Context(), t, Webhook{URL: server.URL + what}, &fakeRun{})
		require.EqualError(t, err, want)
		require.False(t, isPermanent(err))
	}
}

func TestWebhookLines(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", state.MaxCheckpoint)
	for name, tc := range map[string]struct {
		answer    string
		err       string
		permanent bool
		progress  []report
		taken     []string
		output    string
	}{
		"all is well": {
			answer: `{"progress":{"done":1,"total":3,"message":"m"}}` + "\n\n" + `{"checkpoint":{"page": 1}}` + "\r\n" + `{"output":"hello"}` + "\n{}\n" +
				`{"progress":{"done":3},"checkpoint":null,"output":"bye"}`,
			progress: []report{{1, 3, "m"}, {3, 0, ""}}, taken: []string{`{"page":1}`, `null`}, output: "hello\nbye\n",
		},
		"nothing":        {},
		"failed":         {answer: `{"checkpoint":1}` + "\n" + `{"error":"no funds"}` + "\n" + `{"checkpoint":2}`, err: "no funds", taken: []string{"1"}},
		"for good":       {answer: `{"error":"no account","permanent":true}`, err: "no account", permanent: true},
		"not said why":   {answer: `{"error":""}`, err: "the answer says that it failed, and not why"},
		"escapes":        {answer: `{"error":"\u001b[31mred"}`, err: "\ufffd[31mred"},
		"permanent":      {answer: `{"permanent":true}`, err: "line 1 of the answer cannot be read: permanent stands beside error; it is JSON with progress, checkpoint, output or error"},
		"unknown":        {answer: "\n" + `{"eror":"x"}`, err: `line 2 of the answer cannot be read: json: unknown field "eror"; it is JSON with progress, checkpoint, output or error`},
		"no JSON":        {answer: "<html>", err: "line 1 of the answer cannot be read: invalid character '<' looking for beginning of value; it is JSON with progress, checkpoint, output or error"},
		"bad progress":   {answer: `{"progress":{"done":-1}}`, err: "done and total are not negative"},
		"too long":       {answer: `{"output":"` + strings.Repeat("x", maxNDJSON) + `"}`, err: "a line of the answer has more than 263168 bytes"},
		"too large":      {answer: `{"checkpoint":"` + huge + `"}`, err: "the checkpoint is too large", permanent: true},
		"just too large": {answer: `{"checkpoint":"` + huge[2:] + `"}`, taken: []string{`"` + huge[2:] + `"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := target(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", ndjson+"; charset=utf-8")
				fmt.Fprint(w, tc.answer)
			})
			run := &fakeRun{}
			err := send(t.Context(), t, Webhook{URL: server.URL}, run)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
			}
			require.Equal(t, tc.permanent, isPermanent(err))
			require.Equal(t, tc.progress, run.progress)
			require.Equal(t, tc.taken, run.taken)
			require.Equal(t, tc.output, run.output)
		})
	}
}

// The next line is not read before a checkpoint is durable, and one that cannot be written ends the call.
func TestWebhookCheckpoints(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
		w.Header().Set("Content-Type", ndjson)
		fmt.Fprint(w, `{"checkpoint":1}`+"\n"+`{"checkpoint":2}`+"\n"+`{"progress":{"done":2}}`+"\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	run := &fakeRun{save: func(_ context.Context, value json.RawMessage) error {
		if string(value) == "2" {
			return fmt.Errorf("checkpoint: %w", cronrunner.ErrNotOwner)
		}
		return nil
	}}
	err := send(t.Context(), t, Webhook{URL: server.URL}, run)
	require.ErrorIs(t, err, cronrunner.ErrNotOwner)
	require.Equal(t, []string{"1"}, run.taken)
	require.Empty(t, run.progress)
	<-left
}

func TestWebhookSecrets(t *testing.T) {
	const inEnv, inFile, inText, inQuery = "s3cret-in-env", "s3cret-in-file", "s3cret-in-text", "s3cret-in-query"
	t.Setenv("WEBHOOK_TEST_SECRET", inEnv)
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("Bearer "+inFile+"\r\n"), 0o600))
	var got http.Header
	server := target(t, func(w http.ResponseWriter, r *http.Request) { // it repeats all that it gets
		got = r.Header.Clone()
		echo := strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Cookie"), r.URL.RawQuery}, " ")
		switch r.URL.Path {
		case "/lines":
			w.Header().Set("Content-Type", ndjson)
			line, _ := json.Marshal(map[string]any{"output": echo, "progress": report{Message: echo}, "error": echo})
			fmt.Fprintf(w, "%s", line)
		case "/bad-line":
			w.Header().Set("Content-Type", ndjson)
			fmt.Fprint(w, `{"`+echo+`":1}`)
		case "/moved":
			w.Header().Set("Location", "http://elsewhere/"+inEnv+"?x="+inFile)
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, strings.Repeat("-", state.MaxOutput-7)+echo)
		}
	})
	core, logs := observer.New(zap.DebugLevel)
	e := New(zap.New(core))
	defer e.Close()
	for _, address := range []string{server.URL + "/lines", server.URL + "/bad-line", server.URL + "/moved", server.URL + "/teapot", "http://127.0.0.1:1", "https" + server.URL[4:]} {
		w := Webhook{URL: address + "?token=" + inQuery, Headers: map[string]HeaderValue{
			"Authorization": {File: path}, "X-Key": {Env: "WEBHOOK_TEST_SECRET"}, "Cookie": {Text: inText},
		}}
		require.NoError(t, w.Check())
		run := &fakeRun{}
		err := w.do(t.Context(), run, e.log, e.transports, nil)
		require.Error(t, err)
		said := fmt.Sprint(w.Target(), err, run.output, run.progress, logs.All())
		require.NotContains(t, said, "s3cret")
		if strings.HasPrefix(address, server.URL) {
			require.Equal(t, []string{"Bearer " + inFile, inEnv, inText}, []string{got.Get("Authorization"), got.Get("X-Key"), got.Get("Cookie")})
		}
		if strings.HasSuffix(address, "/teapot") {
			require.Contains(t, run.output, "[hidden]")
			require.LessOrEqual(t, len(run.output), state.MaxOutput)
		}
	}

	require.NoError(t, os.WriteFile(path, []byte("renewed"), 0o600))
	err := Webhook{URL: server.URL, Headers: map[string]HeaderValue{"Authorization": {File: path}}}.do(t.Context(), &fakeRun{}, e.log, e.transports, nil)
	require.Error(t, err)
	require.Equal(t, "renewed", got.Get("Authorization"), "it is read for each request")
}

func TestWebhookSecretThatCannotBeHad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	server := target(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent without its secret") })
	for _, tc := range []struct {
		value     HeaderValue
		want      string
		permanent bool
	}{
		{HeaderValue{Env: "NO_SUCH_VARIABLE"}, "the header X-Key: the scheduler has no variable NO_SUCH_VARIABLE, or it is empty; start it with one", true},
		{HeaderValue{File: dir + "/none"}, "the header X-Key: " + dir + "/none cannot be read: no such file or directory", false},
		{HeaderValue{File: dir}, "the header X-Key: " + dir + " cannot be read", false},
		{HeaderValue{File: write("empty", "\n")}, "the header X-Key: " + dir + "/empty is empty", false},
		{HeaderValue{File: write("large", strings.Repeat("x", maxSecret+1))}, "the header X-Key: " + dir + "/large has more than 65536 bytes", false},
		{HeaderValue{File: write("lines", "a\nb\n")}, "the header X-Key: has a control character, which no header can have", false},
	} {
		err := send(t.Context(), t, Webhook{URL: server.URL, Headers: map[string]HeaderValue{"X-Key": tc.value}}, &fakeRun{})
		require.EqualError(t, err, tc.want)
		require.Equal(t, tc.permanent, isPermanent(errors.Unwrap(err)))
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

// Calls of every kind leave nothing open.
func TestWebhooksLeaveNothing(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			fmt.Fprint(w, large)
		case "/refused":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, large)
		case "/moved":
			w.Header().Set("Location", "http://elsewhere/")
			w.WriteHeader(http.StatusFound)
			fmt.Fprint(w, large)
		case "/hangs":
			io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
			<-r.Context().Done()
		}
	})
	e := New(nil)
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		require.NoError(t, err)
		return len(entries)
	}
	around := func(n int) {
		for i := range n {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			what := []string{"/", "/large", "/refused", "/moved", "/hangs"}[i%5]
			if what == "/hangs" {
				ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
			}
			Webhook{URL: server.URL + what}.do(ctx, &fakeRun{}, zap.NewNop(), e.transports, nil) //nolint:errcheck // most fail
			cancel()
		}
	}
	around(20)
	files, routines := count(), runtime.NumGoroutine()
	around(500)
	eventually(t, "files and goroutines are as few as before", func() bool { return count() <= files+20 && runtime.NumGoroutine() <= routines+60 })
	e.Close()
}

func TestWebhookOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var peer, protocol string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		peer, protocol = "", r.Proto
		if len(r.TLS.PeerCertificates) > 0 {
			peer = r.TLS.PeerCertificates[0].Subject.CommonName
		}
	}))
	certificate, key := ca.issue(t, "server")
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.pool(), ClientAuth: tls.VerifyClientCertIfGiven}
	server.EnableHTTP2 = true
	server.Config.ErrorLog, err = zap.NewStdLogAt(zap.NewNop(), zap.DebugLevel)
	require.NoError(t, err)
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	caFile := write("ca.pem", ca.pem)
	err = send(t.Context(), t, Webhook{URL: server.URL}, &fakeRun{})
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	require.NoError(t, send(t.Context(), t, Webhook{URL: server.URL, CACert: caFile}, &fakeRun{}))
	require.Empty(t, peer)
	require.Equal(t, "HTTP/2.0", protocol)
	stranger := write("stranger.pem", newAuthority(t).pem)
	require.ErrorContains(t, send(t.Context(), t, Webhook{URL: server.URL, CACert: stranger}, &fakeRun{}), "certificate signed by unknown authority")
	require.ErrorContains(t, send(t.Context(), t, Webhook{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), CACert: caFile}, &fakeRun{}), "wanted to match localhost")

	// A certificate that is renewed counts from the next call.
	e := New(nil)
	defer e.Close()
	first, firstKey := ca.issue(t, "first")
	w := Webhook{URL: server.URL, CACert: caFile, Cert: write("cert.pem", first), Key: write("key.pem", firstKey)}
	require.NoError(t, w.Check())
	own := &ownTransport{}
	do := func() error { return w.do(t.Context(), &fakeRun{}, zap.NewNop(), e.transports, own) }
	require.NoError(t, do())
	require.Equal(t, "first", peer)
	was := own.transport
	require.NoError(t, do())
	require.Same(t, was, own.transport)
	second, secondKey := ca.issue(t, "second")
	write("cert.pem", second)
	require.ErrorContains(t, do(), "are no certificate and its key")
	write("key.pem", secondKey)
	require.NoError(t, do())
	require.Equal(t, "second", peer)
	require.Len(t, e.transports.own, 1)
	write("ca.pem", []byte("x"))
	require.EqualError(t, do(), caFile+" has no certificate in PEM form")
	require.NoError(t, os.Remove(caFile))
	require.EqualError(t, do(), caFile+" cannot be read: no such file or directory")
}

func TestHide(t *testing.T) {
	t.Parallel()
	var s secrets
	for _, text := range []string{"Basic dXNlcjpwYXNz", "abc", "", "dXNlcjpwYXNzMTI"} {
		s.add(text)
	}
	require.Equal(t, "[hidden], [hidden], [hidden], abc", s.hide("Basic dXNlcjpwYXNz, dXNlcjpwYXNz, dXNlcjpwYXNzMTI, abc"))
	require.Equal(t, "https://[hidden]@proxy/x", userinfo.ReplaceAllString("https://jo:pw@proxy/x", "://[hidden]@"))
}

// However the answer comes in and wherever it is cut, no part of a secret is kept.
func TestHiderKeepsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s secrets
		s.add("Bearer SEKRET-0123456789")
		s.add("TOPSEK-0123456789-longer")
		limit := rapid.IntRange(60, 200).Draw(t, "limit")
		h := &hider{secrets: s, to: newTail(limit)}
		var text strings.Builder
		for range rapid.IntRange(1, 40).Draw(t, "parts") {
			text.WriteString(rapid.SampledFrom([]string{"Bearer SEKRET-0123456789", "TOPSEK-0123456789-longer", "SEKRET-0123456789", "\n", "Bearer ", "x", "....."}).Draw(t, "part"))
		}
		for rest := text.String(); rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			_, err := h.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
		h.flush()
		kept := h.to.text()
		require.LessOrEqual(t, len(kept), limit)
		body := kept
		if strings.HasPrefix(kept, "[cut: ") {
			_, body, _ = strings.Cut(kept, "\n")
		}
		require.NotRegexp(t, `SEK|RET|\d|longer`, body)
	})
}
