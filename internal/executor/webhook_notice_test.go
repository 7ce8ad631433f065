package executor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

var notice = cronrunner.Notice{
	Key: "default/billing/failing/20261130T010000Z", Job: "billing", Kind: state.AlertFailing, Run: "20261130T010000Z",
	Since: time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC), Count: 3, Error: "a<b", Instance: "a", Namespace: "default", Text: "billing is failing",
}

func notify(ctx context.Context, t *testing.T, w Webhook) error {
	t.Helper()
	e := New(nil)
	defer e.Close()
	return e.Notify(w)(ctx, notice)
}

func TestNoticeIsPosted(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := target(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	})
	require.NoError(t, notify(t.Context(), t, Webhook{URL: server.URL + "/hook?x=1", Headers: map[string]HeaderValue{"X-Key": {Text: "v"}}}))
	require.Equal(t, "POST /hook?x=1", got.Method+" "+got.URL.String())
	require.JSONEq(t, `{"job":"billing","kind":"failing","run":"20261130T010000Z","since":"2026-11-30T01:00:00Z","count":3,"error":"a<b",`+
		`"instance":"a","namespace":"default","text":"billing is failing"}`, body)
	require.Contains(t, body, "a<b")
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "etcdcron", "Idempotency-Key": notice.Key, "Etcdcron-Job": "billing", "X-Key": "v",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}
}

func TestNoticeAnswers(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.URL.Path[1:], &code) //nolint:errcheck // a code of 0 panics
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
	})
	for code, want := range map[int]struct {
		text      string
		permanent bool
		after     bool
	}{
		200: {}, 204: {},
		408: {"answered 408 Request Timeout", false, true}, 425: {"answered 425 Too Early", false, true},
		429: {"answered 429 Too Many Requests", false, true}, 503: {"answered 503 Service Unavailable", false, true},
		400: {"answered 400 Bad Request", true, false}, 404: {"answered 404 Not Found", true, false},
	} {
		err := notify(t.Context(), t, Webhook{URL: fmt.Sprint(server.URL, "/", code)})
		if want.text == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want.text)
		require.Equal(t, want.permanent, isPermanent(err), code)
		after := cronrunner.RetryAfter(err, time.Second)
		require.Equal(t, want.after, fmt.Sprintf("%T", err) == fmt.Sprintf("%T", after), code)
	}
}

func TestNoticeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	server := target(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(errStop) }()
	require.EqualError(t, notify(ctx, t, Webhook{URL: server.URL}), "no answer in time: "+errStop.Error())
}

// Of a chat tool's address the path is the secret. Neither it, nor a query, nor a header shows anywhere, whatever the
// receiver does with them.
func TestNoticeSecrets(t *testing.T) {
	const inPath, inQuery, inEnv, inFile, moved = "s3cret-in-path", "s3cret-in-query", "s3cret-in-env", "s3cret-in-file", "s3cret-of-theirs"
	t.Setenv("NOTICE_TEST_SECRET", inEnv)
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("Bearer "+inFile+"\n"), 0o600))
	var got atomic.Pointer[http.Header]
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(new(r.Header.Clone()))
		switch {
		case strings.HasSuffix(r.URL.Path, "/moved"):
			w.Header().Set("Location", "/"+inPath+"/"+moved+"?x="+inFile)
			w.WriteHeader(http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/broken"):
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.URL, r.Header)
		}
	})
	parrot := echoing(t)
	core, logs := observer.New(zap.DebugLevel)
	e := New(zap.New(core))
	defer e.Close()
	for _, address := range []string{server.URL, "http://127.0.0.1:1", "https" + server.URL[4:], parrot} {
		for _, end := range []string{"/moved", "/broken", "/teapot"} {
			w := Webhook{URL: address + "/" + inPath + end + "?token=" + inQuery, Headers: map[string]HeaderValue{
				"Authorization": {File: path}, "X-Key": {Env: "NOTICE_TEST_SECRET"},
			}}
			require.NoError(t, w.Check())
			err := e.Notify(w)(t.Context(), notice)
			require.Error(t, err)
			require.NotContains(t, fmt.Sprint(w.Receiver(), err, logs.All()), "s3cret")
			if address == parrot {
				require.ErrorContains(t, err, "[hidden]")
			}
			if address == server.URL {
				require.Equal(t, []string{"Bearer " + inFile, inEnv}, []string{got.Load().Get("Authorization"), got.Load().Get("X-Key")})
			}
		}
	}
	require.Equal(t, "https://hooks.example/…", Webhook{URL: "https://hooks.example/services/T0/B0/" + inPath}.Receiver())
}

// echoing is a server that answers a request with its first line, which is no answer, and shows in the error.
func echoing(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, line)
			conn.Close()
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return "http://" + ln.Addr().String()
}

// What is wrong here may be right at the next leader: nothing is given up for it.
func TestNoticeThatCannotBeSentFromHere(t *testing.T) {
	t.Parallel()
	server := target(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent without its secret") })
	err := notify(t.Context(), t, Webhook{URL: server.URL, Headers: map[string]HeaderValue{"X-Key": {Env: "NO_SUCH_VARIABLE"}}})
	require.EqualError(t, err, "the header X-Key: the scheduler has no variable NO_SUCH_VARIABLE, or it is empty; start it with one")
	require.False(t, isPermanent(err))
	require.Error(t, notify(t.Context(), t, Webhook{}))
}
