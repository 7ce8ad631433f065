package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

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
