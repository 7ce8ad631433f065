package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/zap/zapcore"

	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/state"
)

const (
	everySecond = "jobs:\n  hello:\n    schedule: '* * * * * *'\n    shell: echo hello from $ETCDCRON_JOB\n"
	onceAYear   = "jobs:\n  rare:\n    schedule: '@yearly'\n    shell: 'true'\n"
)

// instance is a Serve that is up.
type instance struct {
	*server
	t      *testing.T
	log    *journal
	cancel context.CancelFunc
	ended  chan error
}

func jobsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// begin calls Serve; its end is waited for at the end of the test.
func begin(t *testing.T, cfg ServeConfig) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	i := &instance{t: t, log: newJournal(zapcore.InfoLevel), cancel: cancel, ended: make(chan error, 1)}
	cfg.Logger = i.log.log
	if cfg.Listen == "" {
		cfg.Listen = freePort(t)
	}
	cfg.LeaderTTL = 2 * time.Second
	i.server = newServer(cfg)
	go func() {
		i.ended <- i.serve(ctx)
		close(i.ended)
	}()
	t.Cleanup(func() {
		cancel()
		for range i.ended { // until it has ended
		}
		if t.Failed() {
			t.Log(i.log.text())
		}
	})
	return i
}

func embed1(t *testing.T, jobs string) ServeConfig {
	t.Helper()
	return ServeConfig{Embed: true, DataDir: t.TempDir(), EtcdListen: "127.0.0.1:0", ConfigFile: jobsFile(t, jobs)}
}

func (i *instance) end() error {
	i.t.Helper()
	i.cancel()
	select {
	case err := <-i.ended:
		return err
	case <-time.After(patience):
		require.Fail(i.t, "Serve did not return")
		return nil
	}
}

// ask asks over HTTP; code is 0 when nobody answers.
func (i *instance) ask(path string) (code int, body string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get("http://" + i.cfg.Listen + path)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(i.t, err)
	return resp.StatusCode, string(b)
}

func (i *instance) readiness() (code int, r httpapi.Readiness) {
	code, body := i.ask("/readyz")
	if code != 0 {
		require.NoError(i.t, json.Unmarshal([]byte(body), &r))
	}
	return code, r
}

// awaitReadiness waits until /readyz answers so.
func (i *instance) awaitReadiness(what string, match func(code int, r httpapi.Readiness) bool) httpapi.Readiness {
	i.t.Helper()
	var last httpapi.Readiness
	require.Eventually(i.t, func() bool {
		var code int
		code, last = i.readiness()
		return match(code, last)
	}, patience, 50*time.Millisecond, "%s; the last answer was %+v", what, &last)
	return last
}

func leads(code int, r httpapi.Readiness) bool   { return code == 200 && r.Role == httpapi.RoleLeader }
func isReady(code int, _ httpapi.Readiness) bool { return code == 200 }
func notReady(code int, _ httpapi.Readiness) bool {
	return code == http.StatusServiceUnavailable
}

func TestServe(t *testing.T) {
	t.Parallel()
	cfg := embed1(t, everySecond)
	for _, store := range []string{"embedded etcd made a new, empty store", "embedded etcd opened its store"} {
		i := begin(t, cfg)
		require.Equal(t, cfg.DataDir, i.log.await(t, store).ContextMap()["data_dir"])
		up := i.log.await(t, "etcdcron is up").ContextMap()
		require.Equal(t, "http://"+i.cfg.Listen, up["http"])
		require.EqualValues(t, 1, up["jobs"])
		i.log.await(t, "jobs file read, once")
		i.log.await(t, "look at it with: etcdcron jobs --endpoints "+i.etcd.endpoint)
		require.Equal(t, "hello", i.log.await(t, "hello from hello").ContextMap()["job"])
		i.log.await(t, "run finished")

		r := i.awaitReadiness("it leads", leads)
		require.Equal(t, httpapi.Readiness{Status: "ready", Instance: r.Instance, Role: "leader", Leader: r.Instance}, r)
		code, _ := i.ask("/livez")
		require.Equal(t, http.StatusOK, code)
		code, text := i.ask("/metrics")
		require.Equal(t, http.StatusOK, code)
		for _, want := range []string{
			"etcdcron_leader 1", `etcdcron_job_runs_total{job="hello",status="succeeded"} `, "etcdcron_build_info{",
			"etcdcron_etcd_commit_duration_seconds_count ", "go_goroutines ", "process_open_fds ",
		} {
			require.Contains(t, text, want)
		}
		require.NotContains(t, text, "grpc_server", "etcd's own metrics are of the global registry")

		require.NoError(t, i.end())
		i.log.await(t, "stopping: context canceled; no new runs, running ones may finish; a second signal stops them")
		i.log.await(t, "stopped")
		code, _ = i.ask("/livez")
		require.Zero(t, code)
		for _, e := range i.log.All() {
			require.Contains(t, []string{"", "hello"}, e.LoggerName, "neither etcd nor its client has anything to say: %s", e.Message)
		}
	}
}

// A follower is as ready as the leader, and takes over. Two in one process share nothing but etcd.
func TestServeSideBySide(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	cfg := ServeConfig{Client: ClientConfig{Endpoints: []string{e.endpoint}}, ConfigFile: jobsFile(t, everySecond)}
	first := begin(t, cfg)
	first.awaitReadiness("the first leads", leads)
	second := begin(t, cfg)
	r := second.awaitReadiness("the second is ready", isReady)
	require.Equal(t, httpapi.RoleFollower, r.Role)
	_, text := second.ask("/metrics")
	require.Contains(t, text, "etcdcron_leader 0")
	_, text = first.ask("/metrics")
	require.Contains(t, text, "etcdcron_leader 1")

	require.NoError(t, first.end())
	second.awaitReadiness("the second leads", leads)
	require.NoError(t, second.end())
}

func TestServeWaitsForEtcd(t *testing.T) {
	t.Parallel()
	addr, dir := freePort(t), t.TempDir()
	i := begin(t, ServeConfig{Client: ClientConfig{Endpoints: []string{addr}}, ConfigFile: jobsFile(t, onceAYear)})
	i.log.await(t, "etcd does not answer yet")
	r := i.awaitReadiness("etcd is not there yet", func(code int, r httpapi.Readiness) bool {
		return notReady(code, r) && strings.Contains(r.Reason, "connection refused")
	})
	require.Contains(t, r.Hint, "is it running?")
	code, _ := i.ask("/livez")
	require.Equal(t, http.StatusOK, code)

	for range 2 {
		e, err := startEmbedded(t.Context(), dir, addr, nil)
		require.NoError(t, err)
		i.awaitReadiness("etcd is there", leads)
		e.stop()
		r = i.awaitReadiness("etcd is gone", notReady)
		require.Contains(t, r.Reason, "etcd does not answer: ")
		code, _ = i.ask("/livez")
		require.Equal(t, http.StatusOK, code)
	}
	i.log.await(t, "etcd answers now")
	require.NoError(t, i.end())
}

func TestServeStopsWhileItWaits(t *testing.T) {
	t.Parallel()
	i := begin(t, ServeConfig{Client: ClientConfig{Endpoints: []string{freePort(t)}}, ConfigFile: jobsFile(t, onceAYear)})
	i.log.await(t, "etcd does not answer yet")
	start := time.Now()
	require.NoError(t, i.end())
	require.Less(t, time.Since(start), 5*time.Second)
	i.log.await(t, "stopping: context canceled; ")
}

// No lease will ever remove such a key, and nobody leads while it is there.
func TestServeNamesElectionKeyWithoutLease(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	key := keys.Candidates() + "0"
	client := connectTo(t, e.endpoint).client
	_, err = client.Put(t.Context(), key, "restored")
	require.NoError(t, err)
	i := begin(t, ServeConfig{Client: ClientConfig{Endpoints: []string{e.endpoint}}, ConfigFile: jobsFile(t, onceAYear)})
	r := i.awaitReadiness("it is named", notReadyBecause("nobody can lead: the election key "+key))
	require.Contains(t, r.Hint, `etcdctl del "`+key+`"`)
	_, text := i.ask("/metrics")
	require.Contains(t, text, "etcdcron_election_blocked 1")

	_, err = client.Delete(t.Context(), key)
	require.NoError(t, err)
	i.awaitReadiness("it leads", leads)
}

func notReadyBecause(reason string) func(int, httpapi.Readiness) bool {
	return func(code int, r httpapi.Readiness) bool {
		return notReady(code, r) && strings.Contains(r.Reason, reason)
	}
}

func TestServeSaysThatEtcdIsFull(t *testing.T) {
	t.Parallel()
	i := begin(t, embed1(t, onceAYear))
	i.awaitReadiness("it leads", leads)
	require.Eventually(t, func() bool { // then it has nothing to write for a year
		_, text := i.ask("/metrics")
		return strings.Contains(text, `etcdcron_job_next_run_timestamp_seconds{job="rare"}`)
	}, patience, 50*time.Millisecond)
	i.health.committed(rpctypes.ErrNoSpace)
	i.awaitReadiness("it says so", notReadyBecause("out of space"))
	i.health.committed(errors.New("something else"))
	i.awaitReadiness("it still is", notReadyBecause("out of space"))
	i.health.committed(nil)
	i.awaitReadiness("it is well again", leads)
}

func TestServeEndsWithItsEtcd(t *testing.T) {
	t.Parallel()
	i := begin(t, embed1(t, onceAYear))
	i.log.await(t, "leading")
	i.etcd.died <- errors.New("no space left on device")
	err := <-i.ended
	require.ErrorContains(t, err, "the embedded etcd with its data in "+i.cfg.DataDir+" stopped by itself: no space left on device")
	require.NotErrorIs(t, err, ErrBadInput)
}

func TestServeBadInput(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	other := begin(t, embed1(t, onceAYear))
	other.awaitReadiness("it leads", leads)

	for name, tc := range map[string]struct {
		change func(cfg *ServeConfig)
		want   string
	}{
		"no jobs file":      {func(cfg *ServeConfig) { cfg.ConfigFile = "" }, "give a jobs file with -c"},
		"jobs file missing": {func(cfg *ServeConfig) { cfg.ConfigFile = "/no/such/jobs.yaml" }, "/no/such/jobs.yaml: cannot be read"},
		"bad job": {func(cfg *ServeConfig) {
			cfg.ConfigFile = jobsFile(t, "jobs:\n  a:\n    schedule: '* * * * *'\n    shell: 'true'\n    sehll: x\n")
		}, "jobs.yaml:5: "},
		"open HTTP":      {func(cfg *ServeConfig) { cfg.Listen = "0.0.0.0:2390" }, `--listen "0.0.0.0:2390" would be open`},
		"open etcd":      {func(cfg *ServeConfig) { cfg.EtcdListen = "0.0.0.0:2379" }, `--etcd-listen "0.0.0.0:2379" would be open`},
		"HTTP port busy": {func(cfg *ServeConfig) { cfg.Listen = busy.Addr().String() }, "HTTP cannot listen on " + busy.Addr().String() + ": another program uses the port"},
		"HTTP port ours": {func(cfg *ServeConfig) { cfg.Listen = other.cfg.Listen }, "another etcdcron uses the port ("},
		"both ours": {func(cfg *ServeConfig) {
			cfg.Listen, cfg.DataDir, cfg.ConfigFile, cfg.Namespace = other.cfg.Listen, other.cfg.DataDir, other.cfg.ConfigFile, "tests"
		}, "; to run one more beside it: etcdcron serve -c " + other.cfg.ConfigFile + " --endpoints " + other.etcd.endpoint + " --namespace tests --listen 127.0.0.1:0"},
		"both ports ours": {func(cfg *ServeConfig) {
			cfg.Listen, cfg.EtcdListen = other.cfg.Listen, other.etcd.endpoint
		}, " --endpoints " + other.etcd.endpoint + " --listen 127.0.0.1:0"},
		"etcd unknown": {func(cfg *ServeConfig) { cfg.Listen = other.cfg.Listen }, " --endpoints ENDPOINTS-OF-ITS-ETCD --listen 127.0.0.1:0"},
		"HTTP port ours, with endpoints": {func(cfg *ServeConfig) {
			cfg.Listen, cfg.Embed, cfg.Client.Endpoints = other.cfg.Listen, false, []string{other.etcd.endpoint}
		}, "; to run one more beside it, add --listen 127.0.0.1:0"},
		"data dir ours":       {func(cfg *ServeConfig) { cfg.DataDir = other.cfg.DataDir }, "in use by etcdcron, process "},
		"only data dir ours":  {func(cfg *ServeConfig) { cfg.DataDir, cfg.Listen = other.cfg.DataDir, "127.0.0.1:0" }, " --endpoints " + other.etcd.endpoint + " --listen 127.0.0.1:0"},
		"only etcd port ours": {func(cfg *ServeConfig) { cfg.EtcdListen, cfg.Listen = other.etcd.endpoint, "127.0.0.1:0" }, "; to run one more beside it: etcdcron serve -c "},
		"TTL":                 {func(cfg *ServeConfig) { cfg.LeaderTTL = time.Second }, "TTL 1s is too short"},
		"prefix":              {func(cfg *ServeConfig) { cfg.Prefix = "a b" }, `prefix "a b"`},
		"instance id":         {func(cfg *ServeConfig) { cfg.InstanceID = "a/b" }, "instance id"},
		"TLS of our own":      {func(cfg *ServeConfig) { cfg.Client.CACert = "ca.pem" }, "need --endpoints"},
		"endpoint":            {func(cfg *ServeConfig) { cfg.Embed = false; cfg.Client.Endpoints = []string{"etcd"} }, `try "etcd:2379"`},
		"CA file missing":     {func(cfg *ServeConfig) { cfg.Embed = false; cfg.Client.CACert = "/no/ca" }, "--cacert: open /no/ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := embed1(t, onceAYear)
			cfg.Listen = freePort(t)
			tc.change(&cfg)
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("it did not end by itself"))
			defer cancel()
			err := Serve(ctx, cfg)
			require.ErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
