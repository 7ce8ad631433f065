package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

// Three lives on one directory in one process, each with a client that still watches when it ends.
func TestEmbeddedStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := newJournal(zapcore.InfoLevel)
	for life := range 3 {
		e, err := startEmbedded(t.Context(), dir, "127.0.0.1:0", j.log)
		require.NoError(t, err)
		require.Equal(t, life == 0, e.dir.fresh)
		client := connectTo(t, e.endpoint).client
		got, err := client.Get(t.Context(), "life")
		require.NoError(t, err)
		require.Equal(t, life > 0, got.Count == 1, "what an earlier life wrote")
		watch := client.Watch(t.Context(), "life", clientv3.WithCreatedNotify())
		<-watch
		_, err = client.Put(t.Context(), "life", "x")
		require.NoError(t, err)

		start := time.Now()
		e.stop()
		require.Less(t, time.Since(start), 3*time.Second, "etcd itself gives streams 7 s to end")
	}
	require.Zero(t, j.Len(), "nothing to warn of: %s", j.text())
}

func TestEmbeddedRefusesPortInUse(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	for name, tc := range map[string]struct{ addr, want string }{
		"by an etcd":  {e.endpoint, "an etcd 3."},
		"by somebody": {deaf(t), "another program uses the port (see which: ss -ltnp sport = :"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := startEmbedded(t.Context(), dir, tc.addr, nil)
			require.ErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, "etcd cannot listen on "+tc.addr+": "+tc.want)
			require.ErrorContains(t, err, "--etcd-listen")
			if tc.addr == e.endpoint {
				require.ErrorContains(t, err, "join it with --endpoints "+e.endpoint)
			}
			require.NotContains(t, err.Error(), "\n")
			again, err := startEmbedded(t.Context(), dir, "127.0.0.1:0", nil) // nothing was left behind
			require.NoError(t, err)
			again.stop()
		})
	}
}

func TestEmbeddedRefusesDirectory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(t *testing.T) string
		want []string
	}{
		"a file": {func(t *testing.T) string {
			t.Helper()
			path := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			return path
		}, []string{"cannot be used: not a directory", "--data-dir"}},
		"in a file": {func(t *testing.T) string {
			t.Helper()
			path := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			return filepath.Join(path, "below")
		}, []string{"not a directory", "--data-dir"}},
		"read-only": {func(*testing.T) string { return "/proc/etcdcron" }, []string{"/proc/etcdcron cannot be used: ", "--data-dir"}},
		"in use by an etcdcron": {func(t *testing.T) string {
			t.Helper()
			return newEtcd(t).dir.path
		}, []string{"in use by etcdcron, process ", "with its etcd at 127.0.0.1:", "--endpoints"}},
		"in use by an etcd": {func(t *testing.T) string {
			t.Helper()
			dir := t.TempDir()
			db := filepath.Join(dir, "member", "snap", "db")
			require.NoError(t, os.MkdirAll(filepath.Dir(db), 0o700))
			f, err := os.Create(db)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			require.NoError(t, tryLock(f))
			return dir
		}, []string{"in use by another process, perhaps an etcd", "--endpoints"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := startEmbedded(t.Context(), tc.make(t), "127.0.0.1:0", nil)
			require.ErrorIs(t, err, ErrBadInput)
			require.NotContains(t, err.Error(), "\n")
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// etcd logs a damaged database at a level at which a logger would end the process, or panic.
func TestEmbeddedDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "member", "snap", "db")
	require.NoError(t, os.MkdirAll(filepath.Dir(db), 0o700))
	require.NoError(t, os.WriteFile(db, []byte(strings.Repeat("junk", 1<<14)), 0o600))
	_, err := startEmbedded(t.Context(), dir, "127.0.0.1:0", nil)
	require.ErrorContains(t, err, "etcd did not start on the data directory "+dir)
	require.ErrorContains(t, err, "invalid database")
}

// Whenever it is told to stop, it stops, and the directory is as good as before.
func TestEmbeddedStopsWhileItStarts(t *testing.T) {
	t.Parallel()
	why := errors.New("SIGTERM")
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		if after == 0 {
			cancel(why)
		} else {
			time.AfterFunc(after, func() { cancel(why) })
		}
		e, err := startEmbedded(ctx, dir, "127.0.0.1:0", nil)
		if err == nil {
			e.stop()
		} else {
			require.ErrorIs(t, err, why)
		}
		require.Eventually(t, func() bool { // in the background, the half-started etcd goes
			e, err := startEmbedded(context.WithoutCancel(t.Context()), dir, "127.0.0.1:0", nil)
			if err != nil {
				require.ErrorIs(t, err, ErrBadInput)
				return false
			}
			e.stop()
			return true
		}, patience, 50*time.Millisecond)
	}
}

// etcd that is killed in the first moment of its first start never becomes ready again on what it left.
func TestEmbeddedBeginsAnewWhatWasNeverReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "member", "snap", "db")
	require.NoError(t, os.MkdirAll(filepath.Dir(db), 0o700))
	require.NoError(t, os.WriteFile(db, []byte(strings.Repeat("junk", 1<<14)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, unfinishedName), nil, 0o600))
	e, err := startEmbedded(t.Context(), dir, "127.0.0.1:0", nil)
	require.NoError(t, err)
	require.True(t, e.dir.fresh)
	e.stop()
	require.NoFileExists(t, filepath.Join(dir, unfinishedName), "from now on nothing is removed")
}

// What etcd says at its end must not be the end of the process, with jobs left running.
func TestEmbeddedDies(t *testing.T) {
	t.Parallel()
	j := newJournal(zapcore.ErrorLevel)
	e, err := startEmbedded(t.Context(), t.TempDir(), "127.0.0.1:0", j.log)
	require.NoError(t, err)
	defer e.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.etcd.GetLogger().Fatal("failed to save Raft hard state and entries", zapError("no space left on device"))
		panic("it went on")
	}()
	<-ended
	err = <-e.failed
	require.ErrorContains(t, err, "stopped by itself: failed to save Raft hard state and entries: no space left on device")
	require.ErrorContains(t, err, e.dir.path)
}

func TestEmbeddedStoppedFromWithin(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	e.etcd.Server.HardStop()
	require.ErrorContains(t, <-e.failed, "stopped by itself")
}

// Only loopback clients of etcd's own protocol get in: no peer, no page in a browser.
func TestEmbeddedIsClosed(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	require.Empty(t, e.etcd.Peers)
	require.Len(t, e.etcd.Clients, 1)

	ask := func(method, path, host string) (code int, header http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.endpoint+path, strings.NewReader(`{"key":"eA=="}`))
		require.NoError(t, err)
		req.Host = host
		req.Header.Set("Origin", "http://evil.example")
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, resp.Header
	}
	code, header := ask(http.MethodGet, "/version", "")
	require.Equal(t, http.StatusOK, code)
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	code, _ = ask(http.MethodPost, "/v3/kv/range", "")
	require.Equal(t, http.StatusNotFound, code)
	_, port, err := net.SplitHostPort(e.endpoint)
	require.NoError(t, err)
	code, _ = ask(http.MethodGet, "/version", "localhost:"+port)
	require.Equal(t, http.StatusOK, code)
	code, _ = ask(http.MethodGet, "/version", "evil.example")
	require.Equal(t, http.StatusMisdirectedRequest, code)
}

func TestEmbeddedCompacts(t *testing.T) {
	t.Parallel()
	conf := newEtcd(t).etcd.Config()
	require.Equal(t, "periodic", conf.AutoCompactionMode)
	require.Equal(t, compactEvery, conf.AutoCompactionRetention)
}
