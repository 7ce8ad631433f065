package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is an etcd to be examined.
type patient struct {
	t      *testing.T
	client *clientv3.Client
	keys   state.Keys
	store  *state.Store
	now    time.Time
	lease  clientv3.LeaseID
}

func newPatient(t *testing.T, opts ...etcdtest.Option) *patient {
	t.Helper()
	client := etcdtest.Start(t, opts...).Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	lease, err := client.Grant(t.Context(), 600)
	require.NoError(t, err)
	return &patient{
		t: t, client: client, keys: keys, store: state.NewStore(client, keys, state.StoreConfig{}),
		now: time.Now(), lease: lease.ID,
	}
}

func (p *patient) put(key string, v any, opts ...clientv3.OpOption) {
	p.t.Helper()
	value, err := json.Marshal(v)
	require.NoError(p.t, err)
	_, err = p.client.Put(p.t.Context(), key, string(value), opts...)
	require.NoError(p.t, err)
}

// healthy has an instance lead, whose clock is off by so much, and a job run.
func (p *patient) healthy(off time.Duration) {
	leased := clientv3.WithLease(p.lease)
	clock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	}))
	p.t.Cleanup(clock.Close)
	self := state.Instance{ID: "a-1-x", Host: "a", Version: "1.0", Address: clock.URL}
	p.put(p.keys.Candidates()+"1", self, leased)
	p.put(p.keys.Instance(self.ID), self, leased)
	p.job("busy", state.JobStatus{Live: []string{"20240603T110000Z"}, Queue: []string{"20240603T120000Z"}, NextRunAt: p.now.Add(time.Hour)})
	p.put(p.keys.Run("busy", "20240603T110000Z"), state.Run{Status: state.Running, StartedAt: p.now.Add(-time.Hour), Instance: self.ID})
	p.put(p.keys.Run("busy", "20240603T120000Z"), state.Run{Status: state.Pending})
	p.put(p.keys.Lock("busy"), state.Lock{Run: "20240603T110000Z"}, leased)
}

func (p *patient) job(name string, st state.JobStatus) {
	p.put(p.keys.Spec(name), state.Spec{Name: name, Schedule: "@hourly", TimeZone: "UTC", LockTTL: state.Duration(15 * time.Second)})
	p.put(p.keys.Status(name), st)
}

// examined are the findings.
func (p *patient) examined(change ...func(*Config)) []Finding {
	p.t.Helper()
	cfg := Config{Client: p.client, Store: p.store, Root: p.keys.Root(), Again: time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	findings := Examine(p.t.Context(), cfg)
	for i := range findings {
		f := &findings[i]
		require.NotEmpty(p.t, f.Check)
		require.Equal(p.t, f.Level != OK, f.Hint != "", "what to do about %q?", f.Message)
	}
	return findings
}

// bad are those of the findings that are not ok.
func bad(findings []Finding) []string {
	var all []string
	for i := range findings {
		if f := &findings[i]; f.Level != OK {
			all = append(all, fmt.Sprintf("%s %s %s", f.Level, f.Check, f.Message))
		}
	}
	return all
}

// without are texts without those about how fast etcd is: the machine may be busy.
func without(texts []string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return strings.Contains(s, " latency ") })
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	findings := p.examined()
	require.Empty(t, without(bad(findings)))
	checks := map[string]bool{}
	for i := range findings {
		checks[findings[i].Check] = true
	}
	for _, check := range []string{"etcd", "alarms", "latency", "permissions", "leader", "instances", "clocks", "leases", "jobs", "runs", "requests"} {
		require.True(t, checks[check], check)
	}
	left, err := p.client.Get(t.Context(), p.keys.Probe())
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	require.Equal(t, []string{"problem leader nobody leads: nothing is run", "problem instances no instance takes part"}, without(bad(p.examined())))
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]string{
		90 * time.Second: "problem clocks the clock of a-1-x is 1m30s ahead of ours: when it leads, jobs run at another time",
		-8 * time.Second: "warning clocks the clock of a-1-x is 8s behind ours",
	} {
		p := newPatient(t)
		p.healthy(off)
		got := without(bad(p.examined()))
		require.Len(t, got, 1)
		// The Date has whole seconds.
		require.Contains(t, []string{want, strings.Replace(want, "8s", "7s", 1), strings.Replace(want, "8s", "9s", 1), strings.Replace(want, "1m30s", "1m29s", 1), strings.Replace(want, "1m30s", "1m31s", 1)}, got[0])
	}
	p := newPatient(t)
	p.healthy(0)
	p.put(p.keys.Instance("b-2-y"), state.Instance{ID: "b-2-y", Version: "1.0", Address: "http://127.0.0.1:1"}, clientv3.WithLease(p.lease))
	require.Contains(t, strings.Join(bad(p.examined()), "\n"), "warning clocks not looked at: HTTP of b-2-y does not answer from here")
}

func TestWithoutLease(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	p.put(p.keys.Candidates()+"2", state.Instance{})
	for i := range maxKeys + 2 {
		p.put(p.keys.Lock(fmt.Sprintf("job-%d", i)), state.Lock{})
	}
	got := without(bad(p.examined()))
	require.Len(t, got, 1+maxKeys+1)
	require.Equal(t, "problem leases leader/2 has no lease, so it does not go by itself: nobody else can lead while it is there. "+
		"It was restored from a backup or put there by a tool", got[0])
	require.Contains(t, got[1], "problem leases locks/job-0 has no lease")
	require.Equal(t, "problem leases and 2 more under /etcdcron/default/locks/", got[1+maxKeys])
}

func TestJobs(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	p.put(p.keys.Spec("odd"), state.Spec{Name: "odd", Schedule: "often"})
	p.put(p.keys.Status("odd"), state.JobStatus{})
	p.job("late", state.JobStatus{NextRunAt: p.now.Add(-2 * overdue)})
	p.job("paused", state.JobStatus{NextRunAt: p.now.Add(-2 * overdue)})
	p.put(p.keys.Control("paused"), state.Control{Paused: true})
	p.job("fails", state.JobStatus{ConsecutiveFailures: manyFailures})
	p.put(p.keys.Spec("retired"), state.Spec{Name: "retired", Schedule: "often", Retired: true})
	p.put(p.keys.Status("retired"), state.JobStatus{})
	got := without(bad(p.examined()))
	require.Len(t, got, 3)
	require.Contains(t, got[0], "problem jobs job odd is invalid and does not run: ")
	require.Equal(t, []string{"problem jobs 1 job is overdue by more than 1m: late", "warning jobs 1 job has failed 3 times or more in a row: fails"}, got[1:])
}

func TestRuns(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	const id = "20240603T110000Z"
	live := state.JobStatus{Live: []string{id}}
	p.job("a-unlocked", live)
	p.put(p.keys.Run("a-unlocked", id), state.Run{Status: state.Running, StartedAt: p.now.Add(-time.Minute), Instance: "z-9-z"})
	p.job("b-begins", live) // its lock may have gone this moment
	p.put(p.keys.Run("b-begins", id), state.Run{Status: state.Running, StartedAt: p.now.Add(-time.Second)})
	p.job("c-gone", live)
	p.job("d-over", live)
	p.put(p.keys.Run("d-over", id), state.Run{Status: state.Succeeded})
	p.job("e-waits", state.JobStatus{Queue: []string{id}})
	require.Equal(t, []string{
		"problem runs run 20240603T110000Z of job a-unlocked has no lock: its instance, z-9-z, has died, and nobody has taken it over",
		"problem runs run 20240603T110000Z of job c-gone has no record, though its job's status says that it is there",
		"problem runs run 20240603T110000Z of job d-over is over, though its job's status says that it is not",
		"problem runs run 20240603T110000Z of job e-waits has no record, though its job's status says that it is there",
	}, without(bad(p.examined())))
}

// What looks wrong at first and is put right meanwhile is not told.
func TestRuns_PutRight(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	p.job("taken", state.JobStatus{Live: []string{"20240603T110000Z"}})
	e := &examination{Config: Config{Client: p.client, Store: p.store, Timeout: 5 * time.Second, Again: time.Hour, Now: time.Now}}
	defs, err := p.store.Jobs(t.Context())
	require.NoError(t, err)
	suspects, left := suspectsOf(defs)
	require.Zero(t, left)
	require.Len(t, suspects, 3)
	p.job("taken", state.JobStatus{})
	require.Len(t, e.stillSuspect(t.Context(), suspects), 2)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.healthy(0)
	old, fresh := p.now.Add(-2*standsLong), p.now
	put := func(r state.Request) {
		key := p.keys.Request(r.ID)
		if r.Kind == state.AskCancel {
			key = p.keys.Cancel(r.Job, r.Run)
		}
		p.put(key, r)
	}
	put(state.Request{Kind: state.AskTrigger, ID: "20240603T110000Z-m1", Job: "busy", At: old})
	put(state.Request{Kind: state.AskTrigger, ID: "20240603T110000Z-m2", Job: "busy", At: fresh})
	put(state.Request{Kind: state.AskBackfill, ID: "20240603T110000Z-b1", Job: "busy", At: old, From: old, To: old})
	put(state.Request{Kind: state.AskCancel, Job: "busy", Run: "20240603T110000Z", At: old})
	require.Equal(t, []string{
		"warning requests the trigger 20240603T110000Z-m1 of job busy stands since 2m ago",
		"warning requests the cancel 20240603T110000Z of job busy stands since 2m ago",
	}, without(bad(p.examined())))
}

// An etcd that is full is told before anything else, and what is left is looked at all the same.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	p := newPatient(t, etcdtest.WithConfig(func(cfg *embed.Config) { cfg.QuotaBackendBytes = 1 << 20 }))
	p.healthy(0)
	value := strings.Repeat("x", 200<<10)
	require.Eventually(t, func() bool { // until the alarm is raised
		_, err := p.client.Put(t.Context(), "/elsewhere", value)
		return err != nil
	}, 30*time.Second, time.Millisecond)
	got := strings.Join(bad(p.examined()), "\n")
	require.Contains(t, got, "problem etcd 127.0.0.1:")
	require.Contains(t, got, "it takes no writes once that is full")
	require.Contains(t, got, "problem alarms etcd is out of space and takes no writes: nothing is run")
	require.Contains(t, got, "problem latency etcd does not take a write: etcdserver: mvcc: database space exceeded")
}

// A user who may not look at everything is told so, and what he may do.
func TestPermissions(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	root := etcd.Client(t)
	ctx := t.Context()
	grant := func(user string, kind clientv3.PermissionType) {
		_, err := root.RoleAdd(ctx, user)
		require.NoError(t, err)
		keys, err := state.NewKeys("", "")
		require.NoError(t, err)
		_, err = root.RoleGrantPermission(ctx, user, keys.Root(), clientv3.GetPrefixRangeEnd(keys.Root()), kind)
		require.NoError(t, err)
		_, err = root.UserAdd(ctx, user, "secret")
		require.NoError(t, err)
		_, err = root.UserGrantRole(ctx, user, user)
		require.NoError(t, err)
	}
	grant("reader", clientv3.PermissionType(clientv3.PermRead))
	grant("stranger", clientv3.PermissionType(clientv3.PermRead))
	_, err := root.RoleRevokePermission(ctx, "stranger", "/etcdcron/default/", clientv3.GetPrefixRangeEnd("/etcdcron/default/"))
	require.NoError(t, err)
	_, err = root.UserAdd(ctx, "root", "secret")
	require.NoError(t, err)
	_, err = root.UserGrantRole(ctx, "root", "root")
	require.NoError(t, err)
	_, err = root.AuthEnable(ctx)
	require.NoError(t, err)

	for user, want := range map[string]string{
		"reader":   "warning permissions the user may not write under /etcdcron/default/: jobs can be looked at, and not steered",
		"stranger": "problem permissions the user may not read under /etcdcron/default/: nothing can be looked at",
	} {
		client, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints(), Username: user, Password: "secret", DialTimeout: 5 * time.Second})
		require.NoError(t, err)
		defer client.Close()
		keys, err := state.NewKeys("", "")
		require.NoError(t, err)
		p := &patient{t: t, client: client, keys: keys, store: state.NewStore(client, keys, state.StoreConfig{}), now: time.Now()}
		got := strings.Join(bad(p.examined()), "\n")
		require.Contains(t, got, want)
	}
}

func TestMemberDown(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, etcdtest.WithMembers(3))
	client := etcd.Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	etcd.Member(2).Stop() //nolint:errcheck // then it answers, and the test fails
	p := &patient{t: t, client: client, keys: keys, store: state.NewStore(client, keys, state.StoreConfig{}), now: time.Now()}
	got := strings.Join(bad(p.examined(func(c *Config) { c.Timeout = 2 * time.Second })), "\n")
	require.Regexp(t, `problem etcd \S+ does not answer`, got)
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 2 << 30: "2 GiB"} {
		require.Equal(t, want, size(n))
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a, b", named([]string{"a", "b"}))
	require.Equal(t, "a, b, c, d, e, f", named([]string{"a", "b", "c", "d", "e", "f"}))
	require.Equal(t, "a, b, c, d, e and 2 more", named([]string{"a", "b", "c", "d", "e", "f", "g"}))
}
