package cronrunner

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

func TestWithin(t *testing.T) {
	s, err := ParseSchedule("0 9 * * *", "Asia/Shanghai")
	require.NoError(t, err)
	nine := func(day int) time.Time { return time.Date(2026, 12, day, 1, 0, 0, 0, time.UTC) }
	require.Same(t, s, s.Within(time.Time{}, time.Time{}))

	w := s.Within(nine(3), nine(5))
	require.Equal(t, nine(3), w.Next(nine(1)), "the start is included")
	require.Equal(t, nine(5), w.Next(nine(4)), "the end is included")
	require.Zero(t, w.Next(nine(5)))
	first, last, count := w.Between(nine(1), nine(20))
	require.Equal(t, []any{nine(3), nine(5), int64(3)}, []any{first, last, count})
	_, _, count = w.Between(nine(5), nine(20))
	require.Zero(t, count)
	_, _, count = w.Between(nine(1), nine(2))
	require.Zero(t, count)

	w = s.Within(nine(3).Add(time.Millisecond), nine(5).Add(-time.Millisecond))
	require.Equal(t, nine(4), w.Next(nine(1)), "fractions of a second count")
	require.Zero(t, w.Next(nine(4)))
}

func TestAScheduleOutsideItsBoundsIsRefused(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC) }
	for _, tc := range []struct {
		job  Job
		want string
	}{
		{Job{Schedule: "@daily", Start: at(3), End: at(2)}, "end: 2026-12-02T00:00:00Z is before the start, 2026-12-03T00:00:00Z"},
		{Job{Schedule: "0 12 * * *", Start: at(3), End: at(3)}, "never fires from 2026-12-03T00:00:00Z to 2026-12-03T00:00:00Z"},
		{Job{Schedule: "@at 2026-12-24T18:00:00Z", End: at(3)}, "never fires from the beginning to 2026-12-03T00:00:00Z"},
		{Job{Schedule: "@daily", End: at(3).AddDate(9000, 0, 0)}, "end: 11026-12-03 00:00:00: use a year from 1970 to 9999"},
		{Job{Schedule: "nonsense", MaxRuns: -1}, "max_runs: -1 is negative"},
		{Job{Schedule: "@daily", Jitter: -time.Second}, "jitter: -1s is not between"},
		{Job{Schedule: "@daily", Jitter: 25 * time.Hour}, "jitter: 25h0m0s is not between"},
		{Job{Schedule: "@daily", Jitter: 1500 * time.Millisecond}, "jitter: 1.5s: use whole seconds"},
		{Job{Schedule: "@daily", CatchUp: CatchUp{Policy: All, Limit: 2000}}, "catch_up.limit: 2000 is not between"},
		{Job{Schedule: "@daily", CatchUp: CatchUp{Policy: None, Limit: 2}}, `catch_up.limit: only "all" has a limit`},
		{Job{Schedule: "@daily", Overlap: Overlap{Policy: Replace}, CatchUp: CatchUp{Policy: All}}, `catch_up: "all" contradicts overlap "replace"`},
		{Job{Schedule: "@daily", Overlap: Overlap{Policy: Coalesce}, CatchUp: CatchUp{Policy: All}}, `catch_up: "all" contradicts overlap "coalesce"`},
		{Job{Schedule: "@daily", Overlap: Overlap{Policy: Replace, Limit: 2}}, `overlap.limit: only "queue" and "allow" have a limit`},
		{Job{Schedule: "@daily", Overlap: Overlap{Policy: Allow, Limit: -1}}, "overlap.limit: -1 is not between"},
	} {
		tc.job.Name = "j"
		require.ErrorContains(t, tc.job.Check(), tc.want)
	}
}

func TestBeforeLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom([]string{"* * * * * *", "*/7 * * * * *", "*/20 * * * *", "0 2 * * *", "30 1 * * MON"}).Draw(t, "schedule")
		s, err := ParseSchedule(expr, rapid.SampledFrom([]string{"UTC", "America/New_York"}).Draw(t, "zone"))
		require.NoError(t, err)
		after := noon.Add(time.Duration(rapid.IntRange(0, 20_000_000).Draw(t, "after")) * time.Second)
		upTo := after.Add(time.Duration(rapid.IntRange(0, 2_000_000).Draw(t, "length")) * time.Second)
		n := int64(rapid.IntRange(0, 50).Draw(t, "n"))
		_, _, count := s.Between(after, upTo)
		_, _, left := s.Between(s.beforeLast(after, upTo, n), upTo)
		require.Equal(t, min(n, count), left)
	})
}

// Jitter is the same at every instance and after every failover, and spreads jobs over its whole length.
func TestDelayFollowsFromTheName(t *testing.T) {
	require.Zero(t, delayOf("billing", 0))
	require.Zero(t, delayOf("billing", time.Second))
	require.Equal(t, 49*time.Second, delayOf("billing", time.Minute), "what instances of all versions agree on")
	slots := make([]int, 10)
	for n := range 10_000 {
		d := delayOf(fmt.Sprintf("job%d", n), time.Minute)
		require.True(t, 0 <= d && d < time.Minute && d%time.Second == 0)
		slots[d/(6*time.Second)]++
	}
	for _, n := range slots {
		require.InDelta(t, 1000, n, 150)
	}
}

func TestDueTimes(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 12, day, hour, 0, 0, 0, time.UTC) }
	j := mustCompile(t, Job{Name: "billing", Schedule: "@daily", Jitter: time.Minute, Start: at(3, 0), End: at(5, 0)})
	spec := specOf(j)
	due, err := DueTimes(&spec)
	require.NoError(t, err)
	require.Equal(t, at(3, 0).Add(j.delay), due.Next(at(1, 0)))
	require.Equal(t, at(5, 0).Add(j.delay), due.Next(at(4, 12)))
	require.Zero(t, due.Next(at(5, 12)))
	first, last, count := due.Between(at(3, 0), at(6, 0))
	require.Equal(t, []any{at(3, 0).Add(j.delay), at(5, 0).Add(j.delay), int64(3)}, []any{first, last, count})

	spec.Schedule = "nonsense"
	_, err = DueTimes(&spec)
	require.Error(t, err)
}

func TestLateness(t *testing.T) {
	j := mustCompile(t, Job{Name: "billing", Schedule: "@daily", Jitter: time.Minute})
	began := noon.Add(time.Hour)
	for trigger, want := range map[state.Trigger]time.Duration{
		state.BySchedule: time.Hour - j.delay, state.ByCatchUp: time.Hour - j.delay, state.ByHand: time.Hour,
		state.ByRetry: 0, state.ByBackfill: 0,
	} {
		require.Equal(t, want, j.lateness(&state.Run{Trigger: trigger, ScheduledAt: noon}, began), trigger)
	}
}

// Another jitter neither repeats nor loses a scheduled time; another schedule, or other bounds, begin anew.
func TestWhichEditsMoveTheCursor(t *testing.T) {
	base := Job{Name: "billing", Schedule: "@daily"}
	was := state.Definition{SpecRev: 1, View: state.View{Status: state.JobStatus{Cursor: noon.Add(-time.Hour)}}}
	was.Spec, was.View.Status, _ = definition(mustCompile(t, base), state.Definition{}, "code", noon.Add(-time.Hour))
	for name, tc := range map[string]struct {
		edit  func(*Job)
		moves bool
	}{
		"jitter":   {func(j *Job) { j.Jitter = time.Minute }, false},
		"timeout":  {func(j *Job) { j.Timeout = time.Minute }, false},
		"overlap":  {func(j *Job) { j.Overlap.Policy = Replace }, false},
		"schedule": {func(j *Job) { j.Schedule = "@hourly" }, true},
		"zone":     {func(j *Job) { j.TimeZone = "Asia/Tokyo" }, true},
		"start":    {func(j *Job) { j.Start = noon.AddDate(-1, 0, 0) }, true},
		"end":      {func(j *Job) { j.End = noon.AddDate(1, 0, 0) }, true},
		"max_runs": {func(j *Job) { j.MaxRuns = 7 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := base
			tc.edit(&j)
			_, st, changed := definition(mustCompile(t, j), was, "code", noon)
			require.True(t, changed)
			require.Equal(t, tc.moves, st.Cursor.Equal(noon), st.Cursor)
		})
	}
}

// A job with jitter lives by a clock that is its delay behind: all that it is decided by is of that clock.
func TestAJobWithJitterLivesByItsOwnClock(t *testing.T) {
	j := mustCompile(t, Job{Name: "billing", Schedule: "0 * * * *", Jitter: time.Hour})
	require.NotZero(t, j.delay)
	st := &term{since: noon}
	js := &jobState{job: j, resumed: noon.Add(time.Minute)}
	s := st.situationOf(js, 1)
	require.Equal(t, noon.Add(-j.delay), s.since)
	require.Equal(t, noon.Add(time.Minute-j.delay), s.resumed)

	// First seen between a scheduled time and when that is due: it is due yet.
	_, status, _ := definition(j, state.Definition{}, "code", noon.Add(j.delay-time.Second))
	require.Equal(t, noon.Add(j.delay), status.NextRunAt)
	require.True(t, status.Cursor.Before(noon))
	_, status, _ = definition(j, state.Definition{}, "code", noon.Add(j.delay))
	require.Equal(t, noon.Add(time.Hour+j.delay), status.NextRunAt)
	require.Equal(t, noon, status.Cursor)
}
