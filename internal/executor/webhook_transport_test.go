package executor

import (
	"context"
	"crypto/tls"
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
)

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
