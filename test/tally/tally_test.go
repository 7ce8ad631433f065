package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/tally"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var nine = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func TestCountAndDifferences(t *testing.T) {
	t.Parallel()
	run := func(status state.RunStatus, change func(*state.Run)) state.Run {
		r := state.Run{Trigger: state.BySchedule, Status: status, Attempt: 1, DurationMS: 100, FinishedAt: nine}
		change(&r)
		return r
	}
	same := func(*state.Run) {}
	runs := []state.Run{
		run(state.Succeeded, func(r *state.Run) { r.Retries, r.Recoveries = 2, 1 }),
		run(state.Failed, same),
		run(state.Failed, func(r *state.Run) { r.Trigger, r.DurationMS = state.ByHand, 400 }),
		run(state.Canceled, func(r *state.Run) { r.DurationMS = 50 }),
		run(state.Canceled, func(r *state.Run) { r.Attempt, r.Count = 0, 3 }),
		run(state.Skipped, func(r *state.Run) { r.Attempt, r.Reason = 0, state.ReasonOverlap }),
		run(state.Missed, func(r *state.Run) { r.Attempt, r.Reason, r.Count = 0, state.ReasonWindow, 60 }),
		run(state.Running, func(r *state.Run) { r.ID = "live" }),
		run(state.Pending, func(r *state.Run) { r.Attempt, r.ID = 0, "waits" }),
	}
	st := state.JobStatus{
		Live: []string{"live"}, Queue: []string{"waits"}, Running: 1, Pending: 1,
		LastStatus: state.Canceled, LastFinishedAt: nine, LastDurationMS: 50, LastSuccessAt: nine,
		SucceededTotal: 1, FailedTotal: 2, CanceledTotal: 4, ScheduledRunsTotal: 5, RetriedTotal: 2, RecoveredTotal: 1,
		SkippedTotal: 1, SkippedByReason: map[string]int64{state.ReasonOverlap: 1},
		MissedTotal: 60, MissedByReason: map[string]int64{state.ReasonWindow: 60},
		ConsecutiveFailures: 2, MeanDurationMS: 200, MaxDurationMS: 400,
	}
	require.Equal(t, st, tally.Count(runs))

	st.UID, st.Cursor, st.NextRunAt, st.LastRunID = "u", nine, nine, "live" // these are not counted
	require.Empty(t, tally.Differences(st, runs))
	st.MissedTotal, st.ConsecutiveFailures = 59, 0
	require.Equal(t, []string{"MissedTotal: 59; by the records 60", "ConsecutiveFailures: 0; by the records 2"}, tally.Differences(st, runs))
}
