package cronrunner

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// What passed while nobody led is run one after the other, the oldest first, and what falls due meanwhile goes
// through the overlap policy. A change of leader in the middle changes none of it.
func TestCatchUpAllRunsEachOneAfterTheOther(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	o := newOverlapping(Overlap{Policy: Skip})
	o.takes = 50 * time.Millisecond
	o.CatchUp = CatchUp{Policy: All, Limit: 5}
	first := b.start(Config{}, o.Job)
	b.waitRuns("busy", reached(1, state.Succeeded))
	first.stop()
	missed := len(b.runs("busy"))
	b.passed(8 * time.Second)
	o.takes = 700 * time.Millisecond
	a := b.start(Config{InstanceID: "a", Now: c.now}, o.Job)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) >= 3 })
	d := b.start(Config{InstanceID: "d", Now: c.now}, o.Job)
	b.handOver(a, d)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) == 0 })
	c.stop()
	runs := b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Running)+count(runs, state.Pending) == 0 })
	a.stop()
	d.stop()
	require.Equal(t, int64(1), o.most.Load())
	require.True(t, slices.IsSorted(o.order()), o.order())
	require.Equal(t, state.ReasonLimit, runs[missed].Reason)
	caughtUp := 0
	for _, r := range runs[missed:] {
		if r.Trigger == state.ByCatchUp && r.Status == state.Succeeded {
			caughtUp++
		}
	}
	require.GreaterOrEqual(t, caughtUp, 5)
	require.LessOrEqual(t, caughtUp, 6, "the change of leader may have made one late")
	b.requireEachTimeOnce("busy")
}

// A day of a job that is due each second costs as many writes as a minute of it.
func TestALongGapCostsABoundedNumberOfWrites(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy CatchUp
		writes int64 // transactions, until all of the gap is decided and run
	}{
		{CatchUp{}, 3},             // the claim with one missed record, the finish, and the job's definition
		{CatchUp{Policy: None}, 2}, // one missed record and the definition
		{CatchUp{Policy: All, Window: 48 * time.Hour, Limit: 10}, 1 + 1 + 10*3},
	} {
		t.Run(string(tc.policy.Policy), func(t *testing.T) {
			b := newBench(t)
			c := &stoppedClock{}
			c.stopped.Store(noon.UnixNano())
			j := secondly("tick", quick)
			j.CatchUp = tc.policy
			first := b.start(Config{Now: c.now}, j)
			require.Eventually(t, func() bool { return b.defined("tick") }, patience, 5*time.Millisecond)
			first.stop()
			before := b.revisionOf()
			c.stopped.Store(noon.Add(24 * time.Hour).UnixNano())
			second := b.start(Config{Now: c.now}, j)
			runs := b.waitRuns("tick", func(runs []state.Run) bool {
				var times int64
				for _, r := range runs {
					times += r.Times()
				}
				return times == 86_400 && count(runs, state.Pending)+count(runs, state.Running) == 0
			})
			after := b.revisionOf()
			second.stop()
			const coming = 6 // of an instance that comes and leads: its keys and sentinels
			t.Logf("%d records, %d revisions", len(runs), after-before)
			require.LessOrEqual(t, after-before, tc.writes+coming)
			b.requireNothingLeft("tick")
		})
	}
}

// revisionOf is etcd's revision: each transaction that writes makes one more.
func (b *bench) revisionOf() int64 {
	b.t.Helper()
	resp, err := b.client.Get(b.t.Context(), "x")
	require.NoError(b.t, err)
	return resp.Header.Revision
}

func TestMaxRunsIsAnEnd(t *testing.T) {
	b := newBench(t)
	j := secondly("thrice", quick)
	j.MaxRuns = 3
	i := b.start(Config{}, j, secondly("tick", quick))
	b.waitRuns("thrice", reached(1, state.Succeeded))
	byHand := b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "thrice"}))
	b.waitRuns("thrice", reached(3, state.Succeeded))
	n := len(b.runs("tick"))
	b.waitRuns("tick", reached(n+3, state.Succeeded))
	i.stop()
	runs := slices.DeleteFunc(b.runs("thrice"), func(r state.Run) bool { return r.ID == byHand.ID || !r.Trigger.Scheduled() || r.Attempt == 0 })
	require.Len(t, runs, 3)
	st := b.status("thrice")
	require.Equal(t, int64(3), st.ScheduledRunsTotal)
	require.Zero(t, st.NextRunAt)
	b.requireNothingLeft("thrice")
}

// A run with jitter is named after its scheduled time, and starts its delay after it.
func TestJitterDelaysTheRunAndNotItsName(t *testing.T) {
	b := newBench(t)
	j := Job{Name: "billing", Schedule: "*/5 * * * * *", Jitter: 4 * time.Second, LockTTL: 3 * time.Second, Handler: quick}
	delay := mustCompile(t, j).delay
	require.NotZero(t, delay)
	i := b.start(Config{}, j)
	runs := b.waitRuns("billing", reached(2, state.Succeeded))
	i.stop()
	for _, r := range runs {
		require.Zero(t, r.ScheduledAt.Second()%5)
		require.Equal(t, state.RunID(r.ScheduledAt), r.ID)
		require.False(t, r.StartedAt.Before(r.ScheduledAt.Add(delay)))
		require.Less(t, r.LatenessMS, delay.Milliseconds()+3000)
	}
	require.Equal(t, runs[1].ScheduledAt.Add(5*time.Second+delay), b.status("billing").NextRunAt)
}

func TestAllowRunsSeveralAtOnceAndRecoversEach(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Allow, Limit: 3})
	a := b.start(Config{InstanceID: "a"}, h.Job)
	var ids []string
	for range 3 {
		r := h.trigger()
		require.Equal(t, state.Running, r.Status)
		ids = append(ids, r.ID)
	}
	require.Equal(t, state.Skipped, h.trigger().Status)
	d := b.start(Config{InstanceID: "d"}, h.Job)
	b.handOver(a, d)
	require.Equal(t, state.Skipped, h.trigger().Status, "those that go on elsewhere count")
	revokeLocks(t, b) // the lease of all three
	for _, id := range ids {
		b.waitRun("held", id, func(r state.Run) bool { return r.Attempt == 2 && r.Status == state.Running })
	}
	close(h.release)
	for _, id := range ids {
		require.Equal(t, state.Succeeded, b.waitOver("held", id).Status)
	}
	a.stop()
	d.stop()
	require.Equal(t, 3, h.most)
	b.requireNothingLeft("held")
}
