package cronrunner

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// overlapping is a job each second whose runs take longer than that, and what it did.
type overlapping struct {
	Job
	takes         time.Duration
	running, most atomic.Int64
	mu            sync.Mutex
	did           []string // run ids in the order of their starts
}

func newOverlapping(policy Overlap) *overlapping {
	o := &overlapping{takes: 1500 * time.Millisecond}
	o.Job = secondly("busy", func(ctx context.Context, run *Run) error {
		o.most.Store(max(o.most.Load(), o.running.Add(1)))
		defer o.running.Add(-1)
		o.mu.Lock()
		o.did = append(o.did, run.ID())
		o.mu.Unlock()
		select {
		case <-time.After(o.takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	o.Overlap = policy
	return o
}

func (o *overlapping) order() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.did)
}

// stoppedClock is a wall clock that can be stopped: then what waits is done, and nothing new is due.
type stoppedClock struct{ stopped atomic.Int64 }

func (c *stoppedClock) stop() { c.stopped.Store(time.Now().UnixNano()) }

func (c *stoppedClock) now() time.Time {
	if at := c.stopped.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}

func TestQueueRunsEveryOneInOrder(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	o := newOverlapping(Overlap{Policy: Queue, Limit: 50})
	i := b.start(Config{Now: c.now}, o.Job)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) >= 2 })
	c.stop()
	b.waitRuns("busy", func(runs []state.Run) bool { return len(runs) == count(runs, state.Succeeded) })
	i.stop()
	require.Equal(t, int64(1), o.most.Load())
	order := o.order()
	require.True(t, slices.IsSorted(order), order)
	require.Len(t, order, len(b.runs("busy")), "none was skipped")
	b.requireEachTimeOnce("busy")
}

func TestAQueueThatIsFullSkips(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	o := newOverlapping(Overlap{Policy: Queue, Limit: 1})
	i := b.start(Config{Now: c.now}, o.Job)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Skipped) >= 2 })
	c.stop()
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending)+count(runs, state.Running) == 0 })
	i.stop()
	st := b.status("busy")
	require.Equal(t, st.SkippedTotal, st.SkippedByReason[state.ReasonQueueFull])
	b.requireEachTimeOnce("busy")
}

func TestCoalesceEndsWithNothingPendingAndFewerRuns(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	o := newOverlapping(Overlap{Policy: Coalesce})
	i := b.start(Config{Now: c.now}, o.Job)
	b.waitRuns("busy", func(runs []state.Run) bool {
		return slices.ContainsFunc(runs, func(r state.Run) bool { return r.Status == state.Succeeded && r.Times() > 1 })
	})
	c.stop()
	runs := b.waitRuns("busy", func(runs []state.Run) bool { return len(runs) == count(runs, state.Succeeded) })
	i.stop()
	require.Equal(t, int64(1), o.most.Load())
	var times int64
	for _, r := range runs {
		times += r.Times()
	}
	require.Greater(t, times, int64(len(runs)))
	b.requireEachTimeOnce("busy")
}

// The queue is in etcd: a change of leader in the middle changes none of it.
func TestTheQueueSurvivesAChangeOfLeader(t *testing.T) {
	t.Parallel()
	for _, policy := range []Overlap{{Policy: Queue, Limit: 50}, {Policy: Coalesce}} {
		t.Run(string(policy.Policy), func(t *testing.T) {
			b := newBench(t)
			c := &stoppedClock{}
			o := newOverlapping(policy)
			a := b.start(Config{InstanceID: "a", Now: c.now}, o.Job)
			b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) >= 1 })
			d := b.start(Config{InstanceID: "d", Now: c.now}, o.Job)
			b.handOver(a, d)
			n := len(b.runs("busy"))
			b.waitRuns("busy", func(runs []state.Run) bool { return len(runs) >= n+2 })
			c.stop()
			b.waitRuns("busy", func(runs []state.Run) bool { return len(runs) == count(runs, state.Succeeded) })
			a.stop()
			d.stop()
			require.Equal(t, int64(1), o.most.Load())
			require.True(t, slices.IsSorted(o.order()), o.order())
			b.requireEachTimeOnce("busy")
		})
	}
}

func TestAQueuedRunWhoseRecordIsLostIsOwedAnEnd(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"deleted": "", "broken": "{broken"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c := &stoppedClock{}
			o := newOverlapping(Overlap{Policy: Queue})
			i := b.start(Config{Now: c.now}, o.Job)
			b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) >= 1 })
			c.stop()
			lost := b.status("busy").Queue[0]
			key := b.store.Keys().Run("busy", lost)
			var err error
			if fault == "" {
				_, err = b.client.Delete(t.Context(), key)
			} else {
				_, err = b.client.Put(t.Context(), key, fault)
			}
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				r, _, err := b.store.Run(t.Context(), "busy", lost)
				return err == nil && r.Status == state.Skipped && r.Reason == state.ReasonRecordLost
			}, patience, 20*time.Millisecond)
			i.stop()
		})
	}
}

func TestTheQueueOfAJobThatIsGoneIsEnded(t *testing.T) {
	b := newBench(t)
	o := newOverlapping(Overlap{Policy: Coalesce})
	o.takes = 3500 * time.Millisecond
	a := b.start(Config{}, o.Job, secondly("tick", quick))
	b.waitRuns("busy", func(runs []state.Run) bool {
		return slices.ContainsFunc(runs, func(r state.Run) bool { return r.Status == state.Pending && r.Times() > 1 })
	})
	d := b.start(Config{}, secondly("tick", quick))
	b.handOver(a, d)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) == 0 && count(runs, state.Running) == 0 })
	a.stop()
	d.stop()
	require.Greater(t, b.status("busy").SkippedByReason[state.ReasonRetired], int64(1), "all the times that it stood for")
	b.requireEachTimeOnce("busy")
}

// Times in between that have records of their own are not covered a second time.
func TestCoalesceAroundAPause(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	o := newOverlapping(Overlap{Policy: Coalesce})
	o.takes = 6 * time.Second
	i := b.start(Config{Now: c.now}, o.Job)
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) == 1 })
	_, err := b.store.Pause(t.Context(), "busy", "", "")
	require.NoError(t, err)
	b.passed(1100 * time.Millisecond)
	_, err = b.store.Resume(t.Context(), "busy", "", "")
	require.NoError(t, err)
	b.waitRuns("busy", reached(1, state.Skipped))
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending) == 2 })
	c.stop()
	o.takes = 0
	b.waitRuns("busy", func(runs []state.Run) bool { return count(runs, state.Pending)+count(runs, state.Running) == 0 })
	i.stop()
	b.requireEachTimeOnce("busy")
}
