package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watched is an output that tells when a text has come.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string
	seen  chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := bytes.Contains(w.text.Bytes(), []byte(w.until))
	w.text.Write(p)
	if !had && bytes.Contains(w.text.Bytes(), []byte(w.until)) {
		close(w.seen)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestServeUntilTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	require.NoError(t, os.WriteFile(jobs, []byte("jobs:\n  a:\n    schedule: '@yearly'\n    shell: 'true'\n"), 0o600))
	ctx, told := context.WithCancel(t.Context())
	defer told()
	var stdout bytes.Buffer
	stderr := &watched{until: "leading", seen: make(chan struct{})}
	env := map[string]string{
		"ETCDCRON_DATA_DIR": filepath.Join(dir, "data"), "ETCDCRON_ETCD_LISTEN": "127.0.0.1:0",
		"ETCDCRON_LEADER_TTL": "2s", "ETCDCRON_INSTANCE_ID": "tester", "ETCDCRON_NAMESPACE": "tests",
	}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-c", jobs, "--listen", "127.0.0.1:0", "--drain-timeout", "0", "--log-format", "json"},
			surroundings{stdout: &stdout, stderr: stderr, getenv: func(name string) string { return env[name] }, now: time.Now})
	}()
	select {
	case <-stderr.seen:
	case code := <-ended:
		require.Failf(t, "it ended", "with %d: %s", code, stderr)
	}
	told()
	require.Zero(t, <-ended)
	require.Empty(t, stdout.String(), "stdout is for data")
	require.Contains(t, stderr.String(), `"root":"/etcdcron/tests/"`)
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, `"msg":"leading"`) || strings.Contains(line, "etcdcron is up") {
			require.Equal(t, 1, strings.Count(line, `"instance":"tester-`), line)
		}
	}
	require.NotContains(t, stderr.String(), "look at it with", "programs read this")
	require.DirExists(t, filepath.Join(dir, "data", "member"))
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(jobs, []byte("jobs:\n  a:\n    schedule: '@yearly'\n    shell: 'true'\n"), 0o600))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"no file":        {args: []string{"serve"}, code: exitUsage, want: "try: etcdcron serve -c FILE"},
		"no such file":   {args: []string{"serve", "-c", "nope.yaml"}, code: exitBadInput, want: "nope.yaml: cannot be read"},
		"an argument":    {args: []string{"serve", jobs}, code: exitUsage, want: "takes no arguments"},
		"open to others": {env: map[string]string{"ETCDCRON_LISTEN": ":2390"}, args: []string{"serve", "-c", jobs}, code: exitBadInput, want: "--insecure"},
		"busy port":      {args: []string{"serve", "-c", jobs, "--listen", busy.Addr().String()}, code: exitBadInput, want: "another program uses the port"},
		"variable":       {env: map[string]string{"ETCDCRON_LEADER_TTL": "soon"}, args: []string{"serve", "-c", jobs}, code: exitBadInput, want: "ETCDCRON_LEADER_TTL"},
		"endpoint": {
			env: map[string]string{"ETCDCTL_ENDPOINTS": "etcd"}, args: []string{"serve", "-c", jobs, "--listen", "127.0.0.1:0"},
			code: exitBadInput, want: `try "etcd:2379"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tc.env, tc.args...)
			require.Equal(t, tc.code, got.code, got.stderr)
			require.Contains(t, got.stderr, tc.want)
			require.Empty(t, got.stdout)
		})
	}
}
