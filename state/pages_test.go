package state

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of the jobs, and of the requests, are all of them, each once and in order.
func TestParts(t *testing.T) {
	f := setup(t)
	for i := range 7 {
		f.put(f.keys.Status(fmt.Sprint("job", i)), "{}")
		f.put(f.keys.Request(fmt.Sprintf("2026113%dT162930Z-mabcdef", i)), "broken") // is left out
	}
	var jobs []string
	parts := 0
	for after, more := "", true; more; more = after != "" {
		names, next, err := f.JobsAfter(t.Context(), after, 3)
		require.NoError(t, err)
		require.LessOrEqual(t, len(names), 3)
		jobs, after, parts = append(jobs, names...), next, parts+1
	}
	all, err := f.JobNames(t.Context())
	require.NoError(t, err)
	require.Equal(t, all, jobs)
	require.Len(t, all, 8)
	require.Equal(t, 3, parts)

	var made []Request
	for range 5 {
		made = append(made, f.mustSubmit(Request{Kind: AskTrigger}))
	}
	var read []Request
	for after, more := "", true; more; more = after != "" {
		some, next, err := f.RequestsAfter(t.Context(), after, 2)
		require.NoError(t, err)
		for i := range some {
			read = append(read, some[i].Request)
		}
		after = next
	}
	require.Len(t, read, len(made))
	require.ElementsMatch(t, made, read)
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	k, err := NewKeys("", "")
	require.NoError(t, err)
	for key, want := range map[string]Place{
		k.Candidates() + "7": {Kind: OfLeader, ID: "7"},
		k.Instance("a-1"):    {Kind: OfInstance, ID: "a-1"},
		k.Spec("a"):          {Kind: OfSpec, Job: "a"},
		k.Status("a"):        {Kind: OfStatus, Job: "a"},
		k.Control("a"):       {Kind: OfControl, Job: "a"},
		k.Run("a", "x"):      {Kind: OfRun, Job: "a", ID: "x"},
		k.Progress("a", "x"): {Kind: OfProgress, Job: "a", ID: "x"},
		k.Request("x"):       {Kind: OfRequest, ID: "x"},
		k.Cancel("a", "x"):   {Kind: OfRequest, ID: "cancel/a/x"},
	} {
		got, ok := k.PlaceOf(key)
		require.True(t, ok, key)
		require.Equal(t, want, got, key)
	}
	for _, key := range []string{
		"", "/", "/etcdcron/other/status/a", k.Root(), k.Lock("a"), k.Checkpoint("a", "x"), k.JobCheckpoint("a"), k.Sentinel(7), k.Runs("a"),
	} {
		_, ok := k.PlaceOf(key)
		require.False(t, ok, key)
	}
}
