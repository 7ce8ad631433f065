package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Invariant I6: the counters equal what the records say. A random life of a job is accounted for step by
// step, and counted again from its records at the end.
func TestStatusCountersEqualTheRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		st := JobStatus{UID: "u"}.Decided(at)
		records := map[string]Run{}
		var live, queue []string
		recovered := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at = at.Add(time.Second)
			r := Run{ID: RunID(at), Trigger: rapid.SampledFrom([]Trigger{BySchedule, ByCatchUp, ByHand, ByRetry, ByBackfill}).Draw(t, "trigger"), ScheduledAt: at}
			before := st
			switch what := rapid.SampledFrom([]string{"start", "finish", "recover", "skip", "miss", "queue", "merge", "dequeue", "drop"}).Draw(t, "what"); {
			case what == "start":
				r.Status, r.Attempt, r.StartedAt = Running, 1, at
				st = st.Started(&r)
				live = append(live, r.ID)
			case what == "skip":
				r.Status, r.Reason = Skipped, ReasonOverlap
				st = st.NotRun(&r)
			case what == "miss":
				r.Status, r.Reason = Missed, ReasonSuperseded
				r.Count = rapid.Int64Range(2, 90_000).Draw(t, "count")
				at = at.Add(time.Duration(r.Count) * time.Second)
				r.Until = at
				st = st.NotRun(&r)
			case what == "queue":
				r.Status = Pending
				st = st.Queued(&r)
				queue = append(queue, r.ID)
			case (what == "merge" || what == "dequeue" || what == "drop") && len(queue) == 0:
				continue
			case what == "merge":
				r = records[queue[len(queue)-1]]
				r.Count, r.Until = r.Times()+1, at
				st = st.Merged(&r)
			case what == "dequeue":
				r = records[queue[0]]
				queue = queue[1:]
				r.Status, r.Attempt, r.StartedAt = Running, 1, at
				st = st.Started(&r)
				live = append(live, r.ID)
			case what == "drop":
				r = records[queue[0]]
				queue = queue[1:]
				r.Status, r.Reason = rapid.SampledFrom([]RunStatus{Canceled, Skipped}).Draw(t, "fate"), ReasonReplaced
				st = st.NotRun(&r)
			case len(live) == 0:
				continue
			case what == "recover":
				r = records[live[0]]
				r.Attempt++
				recovered++
				st = st.Recovered(&r)
			case what == "finish":
				r = records[live[0]]
				live = live[1:]
				r.Status = rapid.SampledFrom([]RunStatus{Succeeded, Failed, Canceled}).Draw(t, "end")
				r.FinishedAt, r.DurationMS = at, rapid.Int64Range(0, 5000).Draw(t, "duration")
				st = st.Finished(&r)
			}
			records[r.ID] = r
			require.False(t, st.Cursor.Before(before.Cursor), "the cursor never goes back")
		}

		count := map[RunStatus]int64{}
		reasons := map[string]int64{}
		planned := int64(0)
		for _, r := range records {
			if r.Attempt > 0 {
				count[r.Status]++
			} else {
				count[r.Status] += r.Times()
			}
			if r.Status != Canceled {
				reasons[r.Reason] += r.Times()
			}
			if r.Trigger.Scheduled() && (r.Attempt > 0 || r.Status == Pending) {
				planned++
			}
		}
		require.Equal(t, count[Succeeded], st.SucceededTotal)
		require.Equal(t, count[Failed], st.FailedTotal)
		require.Equal(t, count[Canceled], st.CanceledTotal)
		require.Equal(t, count[Skipped], st.SkippedTotal)
		require.Equal(t, count[Missed], st.MissedTotal)
		require.Equal(t, reasons[ReasonOverlap], st.SkippedByReason[ReasonOverlap])
		require.Equal(t, reasons[ReasonSuperseded], st.MissedByReason[ReasonSuperseded])
		require.Equal(t, reasons[ReasonReplaced], st.SkippedByReason[ReasonReplaced])
		require.Equal(t, planned, st.ScheduledRunsTotal)
		require.Equal(t, recovered, st.RecoveredTotal)
		require.Len(t, st.Live, st.Running)
		require.Len(t, queue, st.Pending)
		require.Equal(t, queue, append(queue[:0:0], st.Queue...), "in order")
		require.ElementsMatch(t, live, append([]string{}, st.Live...))
	})
}

func TestStatusMethodsChangeNothing(t *testing.T) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	r := Run{ID: "a", Trigger: BySchedule, ScheduledAt: at, Status: Skipped, Reason: ReasonOverlap}
	st := JobStatus{}.NotRun(&r)
	was := fmt.Sprint(st)
	_ = st.NotRun(&r)
	_ = st.Started(&r)
	require.Equal(t, was, fmt.Sprint(st))
}

func TestStatusManualRunDoesNotEatAScheduledTime(t *testing.T) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	st := JobStatus{}.Decided(at)
	st = st.Started(&Run{ID: "m", Trigger: ByHand, ScheduledAt: at.Add(time.Hour), Status: Running})
	require.Equal(t, at, st.Cursor)
}

func TestStatusRates(t *testing.T) {
	st := JobStatus{}
	_, ok := st.SuccessRate()
	require.False(t, ok)
	for _, ms := range []int64{10, 20, 60} {
		r := Run{Status: Succeeded, DurationMS: ms}
		st = st.Started(&r)
		st = st.Finished(&r)
	}
	bad := Run{Status: Failed, DurationMS: 30, Error: "no"}
	st = st.Started(&bad)
	st = st.Finished(&bad)
	rate, ok := st.SuccessRate()
	require.True(t, ok)
	require.InDelta(t, 0.75, rate, 1e-9)
	require.InDelta(t, 30.0, st.MeanDurationMS, 1e-9)
	require.Equal(t, int64(60), st.MaxDurationMS)
	require.Equal(t, int64(1), st.ConsecutiveFailures)
	require.Equal(t, "no", st.LastError)
}
