package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// putRuns writes bare records with the given ids.
func (f *fixture) putRuns(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		_, err := f.client.Put(f.t.Context(), f.keys.Run(testJob, id), fmt.Sprintf(`{"job":%q,"id":%q,"status":"succeeded"}`, testJob, id))
		require.NoError(f.t, err)
	}
}

// pages reads the whole history in pages of limit.
func (f *fixture) pages(limit int) (ids []string, pages int) {
	f.t.Helper()
	for cursor := ""; ; {
		page, err := f.History(f.t.Context(), testJob, cursor, limit)
		require.NoError(f.t, err)
		require.LessOrEqual(f.t, len(page.Runs), limit)
		for _, r := range page.Runs {
			ids = append(ids, r.ID)
		}
		pages++
		if cursor = page.Next; cursor == "" {
			return ids, pages
		}
	}
}

func TestHistoryIsNewestFirstWhateverTheSpacing(t *testing.T) {
	f := setup(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.Now().UTC().Truncate(time.Second)
	var want []string
	add := func(id string) {
		if !slices.Contains(want, id) {
			want = append(want, id)
		}
	}
	for i := range 200 { // a run each second, just now
		add(RunID(now.Add(-time.Duration(i) * time.Second)))
	}
	for range 40 { // a burst of manual runs in one second
		add(RunID(now.Add(-50*time.Second)) + "-" + RandomSuffix())
	}
	for range 60 { // and some over three years, with long gaps
		add(RunID(now.Add(-time.Duration(rnd.Int64N(int64(3 * 365 * 24 * time.Hour))))))
	}
	f.putRuns(want...)
	slices.Sort(want)
	slices.Reverse(want)
	for _, limit := range []int{1, 7, 20, 100, 1000} {
		got, _ := f.pages(limit)
		require.Equal(t, want, got, "limit %d", limit)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	f := setup(t)
	page, err := f.History(t.Context(), testJob, "", 10)
	require.NoError(t, err)
	require.Equal(t, Page{}, page)
	_, err = f.History(t.Context(), testJob, "not-an-id", 10)
	require.ErrorContains(t, err, "run id")
}

func TestHistoryOfOneJobIsNotAnothers(t *testing.T) {
	f := setup(t)
	f.putRuns(RunID(f.at))
	_, err := f.client.Put(t.Context(), f.keys.Run(testJob+"2", RunID(f.at.Add(time.Minute))), "{}")
	require.NoError(t, err)
	ids, _ := f.pages(10)
	require.Equal(t, []string{RunID(f.at)}, ids)
}

func TestHistoryShowsABrokenRecord(t *testing.T) {
	f := setup(t)
	f.putRuns(RunID(f.at), RunID(f.at.Add(2*time.Minute)))
	_, err := f.client.Put(t.Context(), f.keys.Run(testJob, RunID(f.at.Add(time.Minute))), "{broken")
	require.NoError(t, err)
	page, err := f.History(t.Context(), testJob, "", 10)
	require.NoError(t, err)
	require.Len(t, page.Runs, 3)
	require.Equal(t, RunID(f.at.Add(time.Minute)), page.Runs[1].ID)
	require.Contains(t, page.Runs[1].Error, ErrBadRecord.Error())
}

func TestHistoryLeavesOutKeysThatAreNoRuns(t *testing.T) {
	for _, odd := range []string{"0-put-by-hand", "2", "zzz"} {
		f := setup(t)
		f.putRuns(RunID(f.at), RunID(f.at.Add(time.Minute)))
		_, err := f.client.Put(t.Context(), f.keys.Runs(testJob)+odd, "{}")
		require.NoError(t, err)
		for _, limit := range []int{1, 2, 10} {
			ids, _ := f.pages(limit)
			require.Equal(t, []string{RunID(f.at.Add(time.Minute)), RunID(f.at)}, ids, "%s, limit %d", odd, limit)
		}
	}
}
