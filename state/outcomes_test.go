package state

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := time.Now().UTC().Truncate(time.Second)
	put := func(ago time.Duration, suffix string, r Run) {
		r.Job, r.ID = testJob, RunID(now.Add(-ago))+suffix
		_, err := f.client.Put(t.Context(), f.keys.Run(testJob, r.ID), string(r.encode()))
		require.NoError(t, err)
	}
	put(time.Minute, "", Run{Status: Running})
	put(2*time.Minute, "", Run{Status: Succeeded, DurationMS: 1000})
	put(2*time.Minute, "-mabc", Run{Status: Failed, DurationMS: 3000})
	put(3*time.Minute, "", Run{Status: Skipped})
	put(4*time.Minute, "", Run{Status: Canceled, DurationMS: 9000})
	put(time.Hour, "", Run{Status: Succeeded, DurationMS: 2000}) // it lies in it
	put(2*time.Hour, "", Run{Status: Succeeded, DurationMS: 6000})
	put(25*time.Hour, "", Run{Status: Failed})
	_, err := f.client.Put(t.Context(), f.keys.Run(testJob, RunID(now.Add(-5*time.Minute))), "{broken")
	require.NoError(t, err)

	all, err := f.Outcomes(t.Context(), testJob, now, 24*time.Hour, time.Hour, 0)
	require.NoError(t, err)
	rate := func(v float64) *float64 { return &v }
	require.Equal(t, []Outcomes{
		{Window: Duration(24 * time.Hour), Since: now.Add(-24 * time.Hour), Succeeded: 3, Failed: 1, SuccessRate: rate(0.75), MeanDurationMS: rate(3000)},
		{Window: Duration(time.Hour), Since: now.Add(-time.Hour), Succeeded: 2, Failed: 1, SuccessRate: rate(2.0 / 3), MeanDurationMS: rate(2000)},
		{Since: now},
	}, all)

	none, err := f.Outcomes(t.Context(), "none", now, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []Outcomes{{Window: Duration(time.Hour), Since: now.Add(-time.Hour)}}, none)
}

// What is read is bounded, and what is left out is said.
func TestOutcomesAreCut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		output string
		read   int
	}{
		"records": {"", maxCounted},
		"bytes":   {strings.Repeat("x", MaxOutput), maxCountedBytes / (MaxOutput + 512)},
	} {
		c := newCounting(now, []time.Duration{30 * time.Second, 7 * 24 * time.Hour})
		n := 0
		for r := (Run{Status: Succeeded, Output: tc.output}); ; n++ {
			r.ID = RunID(now.Add(-time.Duration(n) * time.Second))
			if !c.count(&r) {
				break
			}
		}
		require.Equal(t, tc.read, n, name)
		all := c.outcomes()
		require.Equal(t, int64(31), all[0].Succeeded, name)
		require.False(t, all[0].Cut, name)
		require.Equal(t, int64(tc.read), all[1].Succeeded, name)
		require.True(t, all[1].Cut, name)
		require.Equal(t, now.Add(-time.Duration(tc.read-1)*time.Second), all[1].Since, name)
	}
}
