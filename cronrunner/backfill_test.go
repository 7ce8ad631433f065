package cronrunner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

func TestBackfillRunsEachTimeOfTheRangeOnce(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var order []time.Time
	running, most := 0, 0
	j := Job{Name: "report", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(ctx context.Context, run *Run) error {
		mu.Lock()
		running++
		most = max(most, running)
		order = append(order, run.ScheduledAt())
		mu.Unlock()
		_, _, err := b.store.Run(ctx, run.Job(), run.ID()) // a round trip, in which another one could begin
		mu.Lock()
		defer mu.Unlock()
		running--
		return err
	}}
	a, d := b.start(Config{InstanceID: "a"}, j), b.start(Config{InstanceID: "d"}, j)
	require.Eventually(t, func() bool { return b.defined("report") }, patience, 5*time.Millisecond)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	r := b.submit(state.Request{Kind: state.AskBackfill, Job: "report", From: year(1990), To: year(2020), Total: 31, By: "ann"})
	b.waitRuns("report", func(runs []state.Run) bool { return len(runs) > 3 })
	for _, i := range []*instance{a, d} {
		if i.leads() {
			require.NoError(t, i.Elector().Resign(t.Context())) // in the middle
			break
		}
	}
	runs := b.waitRuns("report", reached(31, state.Succeeded))
	a.stop()
	d.stop()
	require.Len(t, runs, 31)
	require.Equal(t, 1, most)
	require.True(t, slices.IsSortedFunc(order, time.Time.Compare), "the oldest first")
	for n, run := range runs {
		require.Equal(t, year(1990+n), run.ScheduledAt)
		require.Equal(t, state.ByBackfill, run.Trigger)
		require.Equal(t, state.RunID(run.ScheduledAt)+r.ID[len("20060102T150405Z"):], run.ID)
	}
	b.requireNoRequests()
	b.requireNothingLeft("report")
}

// The schedule of a job whose runs are spent decides nothing any more; its past can still be run. With jitter,
// what is not due yet is the schedule's.
func TestBackfillOfAJobThatIsExhaustedAndOfOneWithJitter(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	backfill := state.Standing{Request: state.Request{Kind: state.AskBackfill, ID: "20261130T120000Z-b1", From: at(0), Next: at(0), To: at(9)}}
	for name, tc := range map[string]struct {
		job  Job
		runs int
	}{
		"plain":  {Job{Schedule: "* * * * * *"}, 10},
		"spent":  {Job{Schedule: "* * * * * *", MaxRuns: 1}, 10},
		"jitter": {Job{Name: "billing", Schedule: "* * * * * *", Jitter: 6 * time.Second}, 10 - int(delayOf("billing", 6*time.Second)/time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			j := mustCompile(t, tc.job)
			r := backfill
			runs := 0
			for {
				run, acted := nextOfBackfill(j, j.clock(at(9)), r)
				if run.ID == "" {
					break
				}
				require.Equal(t, at(runs), run.ScheduledAt)
				runs++
				if acted.Rest == nil {
					break
				}
				r.Request = *acted.Rest
			}
			require.Equal(t, tc.runs, runs)
		})
	}
	require.NotZero(t, delayOf("billing", 6*time.Second))
}

// A backfill that was asked for twice, since the first answer was lost, makes no run twice: the ids follow
// from its own.
func TestABackfillThatStandsAgainMakesNoRunTwice(t *testing.T) {
	b := newBench(t)
	j := Job{Name: "report", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: quick}
	i := b.start(Config{}, j)
	require.Eventually(t, func() bool { return b.defined("report") }, patience, 5*time.Millisecond)
	r := b.submit(state.Request{
		Kind: state.AskBackfill, Job: "report",
		From: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2002, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	gone := func() bool {
		left, err := b.store.Requests(t.Context())
		return err == nil && len(left) == 0
	}
	b.waitRuns("report", reached(3, state.Succeeded))
	require.Eventually(t, gone, patience, 5*time.Millisecond)
	value := fmt.Sprintf(`{"kind":"backfill","id":%q,"job":"report","from":"2000-01-01T00:00:00Z","next":"2000-01-01T00:00:00Z","to":"2003-01-01T00:00:00Z"}`, r.ID)
	_, err := b.client.Put(t.Context(), b.store.Keys().Request(r.ID), value)
	require.NoError(t, err)
	runs := b.waitRuns("report", reached(4, state.Succeeded))
	require.Eventually(t, gone, patience, 5*time.Millisecond)
	i.stop()
	require.Len(t, runs, 4)
	b.requireNothingLeft("report")
}
