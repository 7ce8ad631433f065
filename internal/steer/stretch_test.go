package steer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStretch(t *testing.T) {
	t.Parallel()
	spec := state.Spec{Name: "a", Schedule: "0 * * * *", TimeZone: "UTC"}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	for name, tc := range map[string]struct {
		from, to, first, last string
		total                 int64
	}{
		"both ends":    {"2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", 3},
		"one":          {"2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", 1},
		"parts":        {"2024-06-03T01:00:00.5Z", "2024-06-03T03:59:59.5Z", "2024-06-03T02:00:00Z", "2024-06-03T03:00:00Z", 2},
		"other offset": {"2024-06-03T09:00:00+08:00", "2024-06-03T11:00:00+08:00", "2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := StretchOf(&spec, at(tc.from), at(tc.to))
			require.NoError(t, err)
			require.Equal(t, at(tc.first), s.First)
			require.Equal(t, at(tc.last), s.Last)
			require.Equal(t, tc.total, s.Total)
			require.Equal(t, s.First, s.Times(1)[0])
		})
	}

	// Jitter moves when a job is due, not its scheduled times.
	delayed := spec
	delayed.Delay = state.Duration(time.Minute)
	s, err := StretchOf(&delayed, at("2024-06-03T01:00:00Z"), at("2024-06-03T01:00:00Z"))
	require.NoError(t, err)
	require.Equal(t, int64(1), s.Total)

	bounded := spec
	bounded.Start, bounded.End = at("2024-06-03T11:00:00Z"), at("2024-06-03T13:00:00Z")
	often := spec
	often.Schedule = "@every 1s"
	for name, tc := range map[string]struct {
		spec     state.Spec
		from, to string
		err, try string
	}{
		"none": {
			spec, "2024-06-03T01:00:01Z", "2024-06-03T01:59:59Z", "job a has no scheduled time from 2024-06-03T01:00:01Z to 2024-06-03T01:59:59Z",
			"another range; the nearest scheduled times are 2024-06-03T01:00:00Z and 2024-06-03T02:00:00Z",
		},
		"before the start": {
			bounded, "2024-06-01T01:00:00Z", "2024-06-01T02:00:00Z", "job a has no scheduled time from 2024-06-01T01:00:00Z to 2024-06-01T02:00:00Z",
			"another range; the next scheduled time is 2024-06-03T11:00:00Z",
		},
		"after the end": {
			bounded, "2024-06-05T01:00:00Z", "2024-06-05T02:00:00Z", "job a has no scheduled time from 2024-06-05T01:00:00Z to 2024-06-05T02:00:00Z",
			"another range; the last scheduled time before is 2024-06-03T13:00:00Z",
		},
		"too many": {
			often, "2024-06-03T00:00:00Z", "2024-06-03T23:59:59Z",
			"job a has 86400 scheduled times from 2024-06-03T00:00:00Z to 2024-06-03T23:59:59Z, more than the 10000 of one backfill",
			"smaller ranges, the first one with --to 2024-06-03T02:46:39Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := StretchOf(&tc.spec, at(tc.from), at(tc.to))
			require.EqualError(t, err, tc.err)
			require.Equal(t, fault.BadInput, fault.Of(err).Kind)
			require.Equal(t, tc.try, fault.Of(err).Hint)
		})
	}
}

func TestCheckRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 6, 3, 12, 0, 0, 0, time.UTC)
	require.NoError(t, CheckRange(now.Add(-time.Hour), now, now, ""))
	require.EqualError(t, CheckRange(now, now.Add(-time.Hour), now, ""), "to 2024-06-03T11:00:00Z is before from 2024-06-03T12:00:00Z")
	err := CheckRange(now, now.Add(time.Second), now, "")
	require.EqualError(t, err, "to 2024-06-03T12:00:01Z is in the future; the schedule itself runs what is to come")
	require.Equal(t, "to 2024-06-03T12:00:00Z", fault.Of(err).Hint)
}
