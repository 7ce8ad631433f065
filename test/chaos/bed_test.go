package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
	"github.com/etcdcron/etcdcron/test/chaos/workload"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

const (
	// patience bounds every wait; nothing is expected to take nearly as long.
	patience = 90 * time.Second
	poll     = 100 * time.Millisecond
	// callTime is what a call of the test's own may take.
	callTime = 5 * time.Second
)

// bed is three members of etcd, the instances on them, and what happens to all.
type bed struct {
	t        *testing.T
	dir      string
	cluster  *etcdtest.Cluster
	client   *clientv3.Client // in nobody's way
	target   *workload.Target
	spaces   []*space
	seats    []*seat
	settings settings

	etcd sync.Mutex // held by who changes the members

	mu     sync.Mutex
	faults []checker.Fault
	asked  map[string][]checker.Ask // by namespace
}

// settings are how large a bed is.
type settings struct {
	lasts time.Duration // of the faults
	burst int           // jobs that are due in the same second
	code  int           // seats of instances that use the library
	file  int           // and of the command

	jobs     string        // of the library's instances; default workload.All
	ttl      time.Duration // of the leader; default 2 s
	mutation string        // of the instances; see mutation_test.go
	patience time.Duration // default patience
}

// space is a namespace, with the jobs of one kind of instances.
type space struct {
	name  string
	store *state.Store
	jobs  []workload.Job
	end   time.Time
}

// startTime is what may pass between the start of the instances and the first fault.
const startTime = 8 * time.Second

func newBed(t *testing.T, s settings) *bed {
	t.Helper()
	s.ttl, s.patience = cmp.Or(s.ttl, 2*time.Second), cmp.Or(s.patience, patience)
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // it stays when the test fails
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the histories and logs are in %s", dir)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	b := &bed{t: t, dir: dir, settings: s, asked: make(map[string][]checker.Ask)}
	b.cluster = etcdtest.Start(t, etcdtest.WithMembers(members))
	b.client = b.cluster.Client(t)
	b.target, err = workload.OpenTarget(dir)
	require.NoError(t, err)
	t.Cleanup(func() { b.target.Close() })

	end := time.Now().Add(startTime + s.lasts).Truncate(time.Second).UTC()
	for _, sp := range []space{
		{name: workload.CodeNamespace, jobs: workload.Code(end, s.jobs, s.burst)},
		{name: workload.FileNamespace, jobs: workload.File(end)},
	} {
		keys, err := state.NewKeys("", sp.name)
		require.NoError(t, err)
		sp.store, sp.end = state.NewStore(b.client, keys, state.StoreConfig{}), end
		b.spaces = append(b.spaces, &sp)
	}
	file, err := workload.JobsFile(b.spaces[1].jobs, worker(), "run")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.path("jobs.yaml"), file, 0o600))
	for i := range s.code {
		b.sit(b.spaces[0], fmt.Sprint("c", i))
	}
	for i := range s.file {
		b.sit(b.spaces[1], fmt.Sprint("f", i))
	}
	return b
}

func (b *bed) path(name string) string { return filepath.Join(b.dir, name) }

// fault notes a fault that begins, and returns what is to be called when it ends.
func (b *bed) fault(f checker.Fault) (over func()) {
	if f.From == 0 {
		f.From = workload.Mono()
	}
	f.To = f.From + int64(24*time.Hour)
	b.mu.Lock()
	defer b.mu.Unlock()
	i := len(b.faults)
	b.faults = append(b.faults, f)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults[i].To = workload.Mono()
	}
}

// call gives a call to etcd its time.
func (b *bed) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.t.Context(), callTime)
}

func (b *bed) eventually(what string, ok func(t *assert.CollectT)) {
	b.t.Helper()
	require.EventuallyWithT(b.t, ok, patience, poll, what)
}

// populated are the namespaces that somebody works in.
func (b *bed) populated() (spaces []*space) {
	for _, sp := range b.spaces {
		for _, s := range b.seats {
			if s.space == sp {
				spaces = append(spaces, sp)
				break
			}
		}
	}
	return spaces
}

// begin starts all instances and waits until their jobs are defined.
func (b *bed) begin() {
	b.t.Helper()
	for _, s := range b.seats {
		require.NoError(b.t, s.start())
	}
	b.eventually("the jobs are not defined", func(t *assert.CollectT) {
		for _, sp := range b.populated() {
			ctx, cancel := b.call()
			defs, err := sp.store.Jobs(ctx)
			cancel()
			require.NoError(t, err)
			require.Len(t, defs, len(sp.jobs))
		}
	})
}

// heal ends all faults.
func (b *bed) heal() {
	b.t.Helper()
	for _, s := range b.seats {
		s.heal()
	}
	for _, m := range b.cluster.Members() {
		if !m.Running() {
			require.NoError(b.t, m.Restart())
		}
	}
	for _, s := range b.seats {
		require.NoError(b.t, s.start())
	}
	b.eventually("etcd takes no writes", func(t *assert.CollectT) {
		ctx, cancel := b.call()
		defer cancel()
		_, err := b.client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		require.NoError(t, err)
		_, err = b.client.Put(ctx, "/chaos", "")
		require.NoError(t, err)
	})
	for _, sp := range b.populated() {
		for i := range sp.jobs {
			b.eventually("no resume", func(t *assert.CollectT) {
				ctx, cancel := b.call()
				defer cancel()
				_, err := sp.store.Resume(ctx, sp.jobs[i].Name, by, "")
				require.NoError(t, err)
			})
		}
	}
}

// settle waits until nothing is left to do. What is not settled then is for the checker to say.
func (b *bed) settle() {
	b.t.Helper()
	deadline := time.Now().Add(max(time.Until(b.spaces[0].end), 0) + b.settings.patience)
	for !b.settled() {
		if time.Now().After(deadline) {
			b.t.Logf("not settled within %s", b.settings.patience)
			return
		}
		time.Sleep(poll)
	}
}

func (b *bed) settled() bool {
	if time.Now().Before(b.spaces[0].end) {
		return false
	}
	for _, sp := range b.populated() {
		ctx, cancel := b.call()
		defer cancel()
		defs, err := sp.store.Jobs(ctx)
		if err != nil {
			return false
		}
		for _, d := range defs {
			st := &d.View.Status
			if !st.NextRunAt.IsZero() || len(st.Live)+len(st.Queue) > 0 {
				return false
			}
		}
		if asked, err := sp.store.Requests(ctx); err != nil || len(asked) > 0 {
			return false
		}
	}
	return true
}

// end stops all instances, each of which must end by itself.
func (b *bed) end() {
	b.t.Helper()
	for _, s := range b.seats {
		s.stop()
	}
	for _, s := range b.seats {
		require.NoError(b.t, s.ended(), "%s; its log is %s", s.name, s.log())
	}
}

// inputs reads what there is to be checked, of each namespace.
func (b *bed) inputs() map[string]*checker.Input {
	b.t.Helper()
	events, err := workload.ReadHistory(b.dir)
	require.NoError(b.t, err)
	events = append(events, b.target.Close()...)
	leftovers := append(b.orphans(), b.leftovers()...)

	inputs := make(map[string]*checker.Input)
	for _, sp := range b.populated() {
		in := &checker.Input{
			Records: make(map[string][]checker.Record), Statuses: make(map[string]state.JobStatus), Faults: b.faults, Asked: b.asked[sp.name],
		}
		defs, err := sp.store.Jobs(b.t.Context())
		require.NoError(b.t, err)
		spec := make(map[string]state.Spec)
		for _, d := range defs {
			spec[d.Spec.Name], in.Statuses[d.Spec.Name] = d.Spec, d.View.Status
		}
		for i := range sp.jobs {
			j := &sp.jobs[i]
			in.Jobs = append(in.Jobs, j.Checked(spec[j.Name].CreatedAt.Add(-time.Duration(spec[j.Name].Delay))))
			in.Records[j.Name] = b.records(sp.store.Keys().Runs(j.Name))
		}
		for _, e := range events {
			if _, ours := in.Statuses[e.Job]; ours || e.Kind == checker.Stall {
				in.Events = append(in.Events, e)
			}
		}
		for _, key := range leftovers {
			if strings.HasPrefix(key, sp.store.Keys().Root()) || strings.Contains(key, " lease ") || strings.Contains(key, " process ") {
				in.Leftovers = append(in.Leftovers, key)
			}
		}
		inputs[sp.name] = in
	}
	return inputs
}

func (b *bed) records(prefix string) []checker.Record {
	b.t.Helper()
	resp, err := b.client.Get(b.t.Context(), prefix, clientv3.WithPrefix())
	require.NoError(b.t, err)
	records := make([]checker.Record, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		records[i].Created, records[i].Modified = kv.CreateRevision, kv.ModRevision
		require.NoError(b.t, json.Unmarshal(kv.Value, &records[i].Run), "%s", kv.Key)
	}
	return records
}

// leftovers are the keys that should be gone after all instances have ended: those that are under a lease, as soon as
// the leases of those that were killed have run out, requests, and what runs have noted.
func (b *bed) leftovers() []string {
	b.t.Helper()
	found := make(map[string]bool)
	for end := time.Now().Add(b.settings.patience); ; time.Sleep(poll) {
		clear(found)
		resp, err := b.client.Get(b.t.Context(), state.DefaultPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		require.NoError(b.t, err)
		for _, kv := range resp.Kvs {
			key := string(kv.Key)
			if kv.Lease != 0 || strings.Contains(key, "/locks/") || strings.Contains(key, "/requests/") || strings.Contains(key, "/progress/") || strings.Contains(key, "/checkpoints/") {
				found[key] = true
			}
		}
		leases, err := b.client.Leases(b.t.Context())
		require.NoError(b.t, err)
		if len(found)+len(leases.Leases) == 0 || time.Now().After(end) {
			for _, l := range leases.Leases {
				found[state.DefaultPrefix+" lease "+strconv.FormatInt(int64(l.ID), 16)] = true
			}
			return slicesOf(found)
		}
	}
}

// orphans are the commands that go on without an instance. The kernel tells of them where there is /proc.
func (b *bed) orphans() (found []string) {
	for end := time.Now().Add(b.settings.patience); ; time.Sleep(poll) {
		found = nil
		all, err := filepath.Glob("/proc/[0-9]*")
		require.NoError(b.t, err)
		for _, proc := range all {
			exe, _ := os.Readlink(filepath.Join(proc, "exe"))
			environ, _ := os.ReadFile(filepath.Join(proc, "environ")) // it may have ended
			if exe == worker() && strings.Contains(string(environ), workload.DirVariable+"="+b.dir+"\x00") {
				found = append(found, " process "+proc)
			}
		}
		if len(found) == 0 || time.Now().After(end) {
			return found
		}
	}
}

func slicesOf(set map[string]bool) (keys []string) {
	for key := range maps.Keys(set) {
		keys = append(keys, key)
	}
	return keys
}
