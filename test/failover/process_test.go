package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/command"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// patience bounds every wait; nothing is expected to take nearly as long.
const patience = 60 * time.Second

var binary string

// TestMain builds the command once, as a user would.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "etcdcron-failover-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if binary, err = command.Build("../..", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// bench is an etcd and the processes on it.
type bench struct {
	t       *testing.T
	dir     string
	cluster *etcdtest.Cluster
	client  *clientv3.Client
	keys    state.Keys
	store   *state.Store
	jobs    string // file
	procs   []*process
}

func newBench(t *testing.T, jobs string) *bench {
	t.Helper()
	cluster := etcdtest.Start(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	b := &bench{t: t, dir: t.TempDir(), cluster: cluster, client: cluster.Client(t), keys: keys}
	b.store = state.NewStore(b.client, keys, state.StoreConfig{})
	b.jobs = filepath.Join(b.dir, "jobs.yaml")
	require.NoError(t, os.WriteFile(b.jobs, []byte(jobs), 0o600))
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// lines reads a file that jobs append to; nothing when it is not there yet.
func (b *bench) lines(name string) []string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(b.t, err)
	return strings.Fields(string(data))
}

// process is one `etcdcron serve`.
type process struct {
	t    *testing.T
	id   string
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error // after done
}

// output is a process's log, which may be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// serve starts an instance. Whatever is left of it at the end of the test is killed.
func (b *bench) serve(id string, args ...string) *process {
	b.t.Helper()
	return b.serveAt(strings.Join(b.cluster.Endpoints(), ","), id, args...)
}

// serveAt starts an instance that knows etcd by other addresses.
func (b *bench) serveAt(endpoints, id string, args ...string) *process {
	b.t.Helper()
	args = append([]string{
		"serve", "-c", b.jobs, "--endpoints", endpoints, "--instance-id", id,
		"--listen", "127.0.0.1:0", "--leader-ttl", leaderTTL.String(),
	}, args...)
	p := &process{t: b.t, id: id, cmd: exec.Command(binary, args...), out: &output{}, done: make(chan struct{})}
	p.cmd.Dir = b.dir
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	require.NoError(b.t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	b.procs = append(b.procs, p)
	b.t.Cleanup(func() {
		if p.alive() {
			p.signal(syscall.SIGCONT)
			p.signal(syscall.SIGKILL)
		}
		<-p.done
		if b.t.Failed() {
			b.t.Logf("--- log of %s\n%s", id, p.out)
		}
	})
	return p
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends a process gracefully.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		require.NoError(p.t, p.err, "exit code of %s", p.id)
	case <-time.After(patience):
		require.FailNow(p.t, p.id+" does not end")
	}
}

func (b *bench) stopAll() {
	b.t.Helper()
	for _, p := range b.procs {
		if p.alive() {
			p.stop()
		}
	}
}

// leader is the process that leads, once one does in a term after the given one.
func (b *bench) leader(after int64) (*process, leader.Info) {
	b.t.Helper()
	var found *process
	var info leader.Info
	b.eventually("nobody leads", func() bool {
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
		defer cancel()
		var err error
		if info, err = leader.Current(ctx, b.client, b.keys); err != nil || info.Term <= after || info.ElectedAt.IsZero() {
			return false
		}
		for _, p := range b.procs {
			if strings.HasPrefix(info.Instance, p.id+"-") {
				found = p
			}
		}
		return found != nil
	})
	return found, info
}

func (b *bench) eventually(msg string, ok func() bool) {
	b.t.Helper()
	require.Eventually(b.t, ok, patience, 10*time.Millisecond, msg)
}

// history is a job's whole history, oldest first; nil while etcd does not answer.
func (b *bench) history(job string) []state.Run {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	page, err := b.store.History(ctx, job, "", 1000)
	if err != nil {
		return nil
	}
	runs := page.Runs
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs
}

func (b *bench) waitSucceeded(job string, more int) {
	b.t.Helper()
	have := succeeded(b.history(job))
	b.eventually("job "+job+" does not go on", func() bool { return succeeded(b.history(job)) >= have+more })
}

func succeeded(runs []state.Run) (n int) {
	for _, r := range runs {
		if r.Status == state.Succeeded {
			n++
		}
	}
	return n
}

// requireEachSecondOnce checks the records of an every-second job against each other, against the job's
// counters and against what it wrote itself: one line per scheduled time.
func (b *bench) requireEachSecondOnce(job string, lines []string) {
	b.t.Helper()
	runs := b.history(job)
	require.NotEmpty(b.t, runs)
	wrote := map[string]int{}
	for _, l := range lines {
		wrote[l]++
	}
	total := map[state.RunStatus]int64{}
	next := runs[0].ScheduledAt
	for _, r := range runs {
		require.Equal(b.t, next, r.ScheduledAt, "scheduled times between records, or twice")
		require.True(b.t, r.Status.Final(), "run %s is %s", r.ID, r.Status)
		next = r.Covers().Add(time.Second)
		total[r.Status] += r.Times()
		n := wrote[r.ScheduledAt.Format(time.RFC3339)]
		require.LessOrEqual(b.t, n, 1, "%s was done %d times", r.ID, n)
		if r.Status == state.Succeeded {
			require.Equal(b.t, 1, n, "%s succeeded without a trace", r.ID)
		}
	}
	def, err := b.store.Job(b.t.Context(), job)
	require.NoError(b.t, err)
	st := def.View.Status
	require.Empty(b.t, st.Live)
	for status, counted := range map[state.RunStatus]int64{
		state.Succeeded: st.SucceededTotal, state.Failed: st.FailedTotal, state.Skipped: st.SkippedTotal,
		state.Missed: st.MissedTotal, state.Canceled: st.CanceledTotal,
	} {
		require.Equal(b.t, total[status], counted, "counter of %s", status)
	}
	b.t.Logf("%s: %d records of %v, %d lines", job, len(runs), total, len(lines))
}

// requireNothingLeft checks that no lease and no key bound to one is left after all have stopped.
func (b *bench) requireNothingLeft() {
	b.t.Helper()
	b.eventually("leases are left", func() bool { // those of a process that was killed last for their TTL
		leases, err := b.client.Leases(b.t.Context())
		return err == nil && len(leases.Leases) == 0
	})
	resp, err := b.client.Get(b.t.Context(), b.keys.Root(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(b.t, err)
	for _, kv := range resp.Kvs {
		require.Zero(b.t, kv.Lease, "%s", kv.Key)
	}
}

// ended reports whether a process has ended, be it reaped yet or not: an orphan's remains are the
// machine's to clear away.
func ended(t *testing.T, pid string) bool {
	t.Helper()
	id, err := strconv.Atoi(pid)
	require.NoError(t, err)
	if errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
		return true
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err != nil || strings.HasPrefix(string(out), "Z")
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.path(name), []byte(text), 0o600))
}
