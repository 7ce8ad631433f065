package size

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/command"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// large is a large installation: a million records.
var large = Amount{Jobs: 10_000, Records: 100}

// seeded is an etcd with n in it, and the command that looks at it.
func seeded(tb testing.TB, n Amount) (look func(args ...string) []byte) {
	tb.Helper()
	bin, err := command.Build("../..", filepath.Join(tb.TempDir(), "bin"))
	require.NoError(tb, err)
	endpoint, _, _ := seededEtcd(tb, n)
	return func(args ...string) []byte {
		cmd := exec.Command(bin, args...)
		cmd.Env = append(cmd.Environ(), "ETCDCRON_ENDPOINTS="+endpoint)
		out, err := cmd.Output()
		if args[0] != "doctor" { // which finds that nobody leads
			require.NoError(tb, err, "%v", args)
		}
		return out
	}
}

// seededEtcd is an etcd with n in it.
func seededEtcd(tb testing.TB, n Amount) (endpoint string, client *clientv3.Client, keys state.Keys) {
	tb.Helper()
	etcd := etcdtest.Start(tb, etcdtest.WithConfig(func(cfg *embed.Config) { cfg.QuotaBackendBytes = 8 << 30 }))
	client = etcd.Client(tb)
	keys, err := state.NewKeys("", "")
	require.NoError(tb, err)
	require.NoError(tb, Seed(tb.Context(), client, keys, n, time.Now()))
	found, err := client.Get(tb.Context(), keys.Root(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(tb, err)
	require.EqualValues(tb, n.Jobs*(n.Records+2), found.Count)
	return etcd.Endpoints()[0], client, keys
}

// What is seeded reads as what an instance writes.
func TestSeed(t *testing.T) {
	t.Parallel()
	n := Amount{Jobs: 40, Records: 130}
	look := seeded(t, n)
	var jobs []struct {
		Name      string  `json:"name"`
		Succeeded int64   `json:"succeeded_total"`
		Failed    int64   `json:"failed_total"`
		Invalid   *string `json:"invalid"`
	}
	require.NoError(t, json.Unmarshal(look("jobs", "-o", "json"), &jobs))
	require.Len(t, jobs, n.Jobs)
	require.Equal(t, Name(0), jobs[0].Name)
	require.Equal(t, int64(128), jobs[0].Succeeded)
	require.Equal(t, int64(2), jobs[0].Failed)
	require.Nil(t, jobs[0].Invalid)

	var runs []state.Run
	require.NoError(t, json.Unmarshal(look("history", Name(7), "-n", "1000", "-o", "json"), &runs))
	require.Len(t, runs, n.Records)
	require.NoError(t, json.Unmarshal(look("history", "-o", "json", "-n", "60"), &runs))
	require.Len(t, runs, 60)
	require.Equal(t, Name(39), runs[39].Job)
	require.Equal(t, runs[0].ID, runs[39].ID)
	require.NotEqual(t, runs[0].ID, runs[40].ID)
	require.NoError(t, json.Unmarshal(look("history", "-o", "json", "-n", "60", "--status", "failed"), &runs))
	require.Len(t, runs, 60)
	require.Equal(t, state.Failed, runs[59].Status)
}

// BenchmarkLook measures the command, from its start to its end, on 10,000 jobs and 1,000,000 records:
//
//	go test ./test/size -run '^$' -bench . -benchtime 5x
func BenchmarkLook(b *testing.B) {
	look := seeded(b, large)
	then := time.Now().Truncate(time.Minute).Add(-20 * time.Minute).Format(time.RFC3339)
	for _, bm := range []struct {
		name string
		args []string
	}{
		{"jobs", []string{"jobs"}},
		{"jobs wide", []string{"jobs", "-o", "wide"}},
		{"jobs json", []string{"jobs", "-o", "json"}},
		{"history of a job", []string{"history", Name(4711)}},
		{"all of a job", []string{"history", Name(4711), "-n", "1000"}},
		{"failed of a job", []string{"history", Name(4711), "--status", "failed"}},
		{"did it run", []string{"history", Name(4711), "--at", then}},
		{"describe", []string{"describe", Name(4711)}},
		{"history of all", []string{"history"}},
		{"failed of all", []string{"history", "--status", "failed"}},
		{"top", []string{"top"}},
		{"doctor", []string{"doctor", "-o", "json"}},
		{"nothing", []string{"version"}}, // what the command takes to start
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				look(bm.args...)
			}
		})
	}
}
