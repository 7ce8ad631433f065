package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/executor"
	"github.com/etcdcron/etcdcron/state"
)

// told is what a command said on its socket.
type told struct{ method, what, body string }

// socket answers for an instance, and is closed at the end of the test.
func socket(t *testing.T, status int, text string) (env map[string]string, said *told) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // its path may be too long for a socket
	require.NoError(t, err)
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	said = &told{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*said = told{r.Method, r.URL.Path, string(body)}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	})}
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(func() {
		server.Close()
		os.RemoveAll(dir)
	})
	return map[string]string{executor.SocketVariable: path}, said
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"5/10": `{"done":5,"message":"","total":10}`, "5": `{"done":5,"message":"","total":0}`, "0/1": `{"done":0,"message":"","total":1}`,
	} {
		env, said := socket(t, http.StatusNoContent, "")
		require.Equal(t, called{}, call(t, env, "progress", arg))
		require.Equal(t, told{"POST", "/progress", want}, *said)
	}
	env, said := socket(t, http.StatusNoContent, "")
	require.Equal(t, called{}, call(t, env, "progress", "7/8", "-m", "<7> of 8"))
	require.JSONEq(t, `{"done":7,"total":8,"message":"<7> of 8"}`, said.body)

	for _, arg := range []string{"", "x", "50%", "5/", "/5", "5/0", "1/2/3", "1.5", "99999999999999999999"} {
		got := call(t, env, "progress", arg)
		require.Equal(t, exitUsage, got.code, arg)
		require.Contains(t, got.stderr, "try: etcdcron progress --help\n")
	}
	require.Equal(t, exitUsage, call(t, env, "progress").code)
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"page 7", `{"page": 7}`, "", "line\n"} {
		env, said := socket(t, http.StatusNoContent, "")
		require.Equal(t, called{}, call(t, env, "checkpoint", value))
		require.Equal(t, told{"POST", "/checkpoint", value}, *said)
	}
	env, said := socket(t, http.StatusOK, "page 7\n")
	require.Equal(t, called{stdout: "page 7\n"}, call(t, env, "checkpoint"))
	require.Equal(t, told{"GET", "/checkpoint", ""}, *said)
	require.Equal(t, exitUsage, call(t, env, "checkpoint", "page", "7").code)
	require.Equal(t, called{}, call(t, env, "checkpoint", "--", "-5"))
	require.Equal(t, "-5", said.body)
}

func TestCheckpoint_FromStandardInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"a\nb\n": 4, strings.Repeat("x", state.MaxCheckpoint+7): state.MaxCheckpoint + 1} {
		env, said := socket(t, http.StatusNoContent, "")
		var stdout, stderr bytes.Buffer
		root := newRootCommand(&options{surroundings: surroundings{stdout: &stdout, stderr: &stderr, getenv: func(name string) string { return env[name] }}})
		root.SetIn(strings.NewReader(text))
		root.SetArgs([]string{"checkpoint", "-"})
		require.NoError(t, root.ExecuteContext(t.Context()))
		require.Len(t, said.body, want)
	}
}

func TestSocket_Refused(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: exitBadInput, 404: exitNotFound, 409: exitFailed, 413: exitBadInput, 500: exitFailed, 503: exitNoConnection} {
		env, _ := socket(t, status, "it says why\n")
		said := "error: it says why\n"
		if want == exitNoConnection {
			said += "try: again\n"
		}
		require.Equal(t, called{code: want, stderr: said}, call(t, env, "checkpoint", "x"))
	}
	require.Equal(t, called{code: exitBadInput, stderr: "error: there is no run to speak of: ETCDCRON_SOCKET is not set\n" +
		"try: call it from a command that etcdcron serve runs; if it was, the log of that instance says why there is no socket\n"},
		call(t, nil, "progress", "1"))
	got := call(t, map[string]string{executor.SocketVariable: "/no/such"}, "checkpoint")
	require.Equal(t, exitNoConnection, got.code)
	require.Equal(t, "error: no answer on /no/such: dial unix /no/such: connect: no such file or directory\n"+
		"try: is the run over? what it leaves running in the background has no socket any more\n", got.stderr)
}

func TestSocket_Interrupted(t *testing.T) {
	t.Parallel()
	env, _ := socket(t, http.StatusNoContent, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := run(ctx, []string{"checkpoint", "x"}, surroundings{stdout: io.Discard, stderr: &stderr, getenv: func(name string) string { return env[name] }})
	require.Equal(t, exitFailed, code)
	require.Equal(t, "error: interrupted\n", stderr.String())
}

// From attempt to attempt, through a real etcd.
func TestCheckpoint_InsideARun(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "out")
	_, p := serving(t, `
jobs:
  a:
    schedule: "* * * * * *"
    max_runs: 1
    retry: {max_attempts: 3, initial: 1ms, max: 1ms}
    permanent_exit_codes: [64]
    environment: {E: `+self+`}
    shell: |
      export `+asCommand+`=1
      echo "$ETCDCRON_ATTEMPT: ${ETCDCRON_CHECKPOINT-none}" >>`+out+`
      case $ETCDCRON_ATTEMPT in
      1) "$E" checkpoint >>`+out+`; echo $? >>`+out+`
         "$E" progress 5/10 -m half && "$E" checkpoint 'page 7' && printf '{"page": 8}\n' | "$E" checkpoint - && exit 1;;
      2) "$E" checkpoint >>`+out+`; exit 64;;
      esac
`)
	require.Contains(t, p.await("trying again"), "exit status 1")
	require.Contains(t, p.await("run finished"), "exit status 64")
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "1: none\n4\n2: {\"page\": 8}\n\n{\"page\": 8}\n", string(got))
}
