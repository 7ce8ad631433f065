package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	def := func(name string) {
		_, err := f.Define(t.Context(), f.term, Definition{}, Spec{Name: name, UID: "u", Schedule: "@daily"}, JobStatus{UID: "u", SucceededTotal: 3})
		require.NoError(t, err)
	}
	for i := range 2*maxTxnOps + 5 {
		def(fmt.Sprintf("many-%03d", i))
	}
	_, err := f.Pause(t.Context(), "many-200", "jo", "why")
	require.NoError(t, err)
	for key, value := range map[string]string{
		f.keys.Spec("many-001"): "{", f.keys.Status("many-002"): "{", f.keys.Control("many-003"): "{", f.keys.Status("without"): "{}",
		f.keys.Control("nobody"): "{}",
	} {
		_, err := f.client.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	jobs, err := f.Jobs(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, 2*maxTxnOps+5+2)
	require.Equal(t, testJob, jobs[0].Spec.Name)
	for i := range jobs {
		one, err := f.Definitions(t.Context(), []string{jobs[i].Spec.Name})
		require.NoError(t, err)
		want := one[jobs[i].Spec.Name]
		want.Spec.Name = jobs[i].Spec.Name
		require.Equal(t, want.Broken == nil, jobs[i].Broken == nil, jobs[i].Spec.Name)
		want.Broken, jobs[i].Broken = nil, nil // two errors that say the same
		want.View.Broken, jobs[i].View.Broken = nil, nil
		require.Equal(t, want, jobs[i])
	}
	names, err := f.JobNames(t.Context())
	require.NoError(t, err)
	require.Equal(t, "without", names[len(names)-1])
}

func TestUnleased(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, err := f.client.Put(t.Context(), f.keys.Lock("a"), "{}", clientv3.WithLease(f.lease(60)))
	require.NoError(t, err)
	_, err = f.client.Put(t.Context(), f.keys.Lock("b"), "{}")
	require.NoError(t, err)
	keys, err := f.Unleased(t.Context(), f.keys.Locks())
	require.NoError(t, err)
	require.Equal(t, []string{f.keys.Lock("b")}, keys)
}

func TestOldestRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	oldest, err := f.OldestRun(t.Context(), testJob)
	require.NoError(t, err)
	require.True(t, oldest.IsZero())
	f.putRuns(RunID(f.at.Add(time.Hour)), RunID(f.at)+"-mabcdef", RunID(f.at.Add(2*time.Hour)))
	oldest, err = f.OldestRun(t.Context(), testJob)
	require.NoError(t, err)
	require.Equal(t, f.at, oldest)
	_, err = f.OldestRun(t.Context(), "a/b")
	require.ErrorIs(t, err, ErrBadName)
}

func TestCancelOf(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.putRuns("20261130T010000Z")
	_, err := f.CancelOf(t.Context(), testJob, "20261130T010000Z")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = f.client.Put(t.Context(), f.keys.Run(testJob, "20261130T010000Z"), `{"status":"running"}`)
	require.NoError(t, err)
	_, err = f.Submit(t.Context(), Request{Kind: AskCancel, Job: testJob, Run: "20261130T010000Z", By: "jo"})
	require.NoError(t, err)
	r, err := f.CancelOf(t.Context(), testJob, "20261130T010000Z")
	require.NoError(t, err)
	require.Equal(t, "jo", r.By)
}
