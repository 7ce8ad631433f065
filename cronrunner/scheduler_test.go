package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

func TestEachScheduledTimeRunsOnce(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	seen := map[time.Time]int{}
	tokens := []int64{}
	i := b.start(Config{}, secondly("tick", func(_ context.Context, run *Run) error {
		mu.Lock()
		defer mu.Unlock()
		seen[run.ScheduledAt()]++
		tokens = append(tokens, run.FencingToken())
		return nil
	}))
	runs := b.waitRuns("tick", reached(4, state.Succeeded))
	i.stop()
	b.requireEachTimeOnce("tick")
	for at, n := range seen {
		require.Equal(t, 1, n, at)
	}
	require.IsIncreasing(t, tokens)
	require.Equal(t, state.BySchedule, runs[0].Trigger)
	require.Equal(t, i.ID(), runs[0].Instance)
	require.NotZero(t, runs[0].FencingToken)
	require.Equal(t, time.Hour.Milliseconds(), runs[0].TimeoutMS)
}

func TestNothingIsLeftBehind(t *testing.T) {
	b := newBench(t)
	for range 2 {
		i := b.start(Config{}, secondly("tick", quick))
		i.waitFor(func(ev Event) bool { _, ok := ev.(Recorded); return ok })
		i.stop()
	}
	leases, err := b.client.Leases(t.Context())
	require.NoError(t, err)
	require.Empty(t, leases.Leases)
	keys := b.store.Keys()
	for _, prefix := range []string{keys.Locks(), keys.Instances(), keys.Candidates(), keys.Root() + "leases/"} {
		resp, err := b.client.Get(t.Context(), prefix, clientv3.WithPrefix())
		require.NoError(t, err)
		require.Empty(t, resp.Kvs, prefix)
	}
	b.requireEachTimeOnce("tick") // what passed between the two was caught up
}

func TestHandOverLosesAndRepeatsNothing(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	seen := map[string]int{}
	work := func(_ context.Context, run *Run) error {
		mu.Lock()
		defer mu.Unlock()
		seen[run.ID()]++
		return nil
	}
	a := b.start(Config{InstanceID: "a"}, secondly("tick", work))
	b.waitRuns("tick", reached(2, state.Succeeded))
	c := b.start(Config{InstanceID: "c"}, secondly("tick", work))
	a.stop()
	c.waitLeading()
	n := len(b.runs("tick"))
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	c.stop()
	b.requireEachTimeOnce("tick")
	for id, times := range seen {
		require.Equal(t, 1, times, id)
	}
}

// H02: the overlap is decided by the run's lock, not by a leader's memory. A run that goes on at an
// instance that handed leadership over is left alone, holds off the next, and its end is noticed.
func TestARunGoesOnWhenItsInstanceStopsLeading(t *testing.T) {
	b := newBench(t)
	var running, most atomic.Int64
	release := make(chan struct{})
	work := func(ctx context.Context, _ *Run) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	a := b.start(Config{InstanceID: "a"}, secondly("slow", work))
	b.waitRuns("slow", reached(1, state.Running))
	c := b.start(Config{InstanceID: "c"}, secondly("slow", work))
	b.handOver(a, c)
	b.waitRuns("slow", reached(2, state.Skipped))
	require.Equal(t, int64(1), most.Load())
	close(release)
	runs := b.waitRuns("slow", reached(3, state.Succeeded))
	require.Equal(t, a.ID(), runs[0].Instance)
	require.Equal(t, 1, runs[0].Attempt, "left alone")
	a.stop()
	c.stop()
	require.Equal(t, int64(1), most.Load())
	b.requireEachTimeOnce("slow")
}

func TestOverlapIsSkippedAndCounted(t *testing.T) {
	b := newBench(t)
	var running, most atomic.Int64
	i := b.start(Config{}, secondly("slow", func(ctx context.Context, _ *Run) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		select {
		case <-time.After(2500 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}))
	b.waitRuns("slow", func(runs []state.Run) bool {
		return count(runs, state.Succeeded) >= 2 && count(runs, state.Skipped) >= 3
	})
	i.stop()
	require.Equal(t, int64(1), most.Load())
	b.requireEachTimeOnce("slow")
	require.Equal(t, b.status("slow").SkippedTotal, b.status("slow").SkippedByReason[state.ReasonOverlap])
}

// badError is what a handler returns that has its nil wrong.
type badError struct{ text string }

func (e *badError) Error() string { return e.text }

// loud observes nothing, and not quietly.
type loud struct{}

func (loud) Observe(Event) { panic("the observer") }

func TestAnObserverThatPanicsIsAlone(t *testing.T) {
	b := newBench(t)
	s, err := New(b.cluster.Client(t), Config{Observer: loud{}})
	require.NoError(t, err)
	require.NoError(t, s.Register(secondly("tick", quick)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.waitRuns("tick", reached(2, state.Succeeded))
	cancel()
	require.NoError(t, <-done)
}

func TestAbortDoesNotWaitForTheDrainLimit(t *testing.T) {
	b := newBench(t)
	started := make(chan struct{}, 10)
	i := b.start(Config{DrainTimeout: time.Hour}, secondly("work", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}))
	<-started
	i.Abort() // nothing to hurry yet
	stopped := make(chan struct{})
	go func() { i.stop(); close(stopped) }()
	require.Eventually(t, func() bool {
		i.Abort()
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	}, patience, 5*time.Millisecond)
	require.Equal(t, state.Canceled, b.runs("work")[0].Status)
}

func TestAHandlerThatFailsIsAlone(t *testing.T) {
	b := newBench(t)
	var nilMap map[string]int
	i := b.start(Config{},
		secondly("ok", quick),
		secondly("err", func(context.Context, *Run) error { return errors.New("no money") }),
		secondly("panic", func(context.Context, *Run) error { panic("boom") }),
		secondly("nil-panic", func(context.Context, *Run) error { panic(nil) }), //nolint:govet // on purpose
		secondly("runtime-panic", func(context.Context, *Run) error { nilMap["a"] = 1; return nil }),
		secondly("goexit", func(context.Context, *Run) error { runtime.Goexit(); return nil }),
		secondly("bad-error", func(context.Context, *Run) error { var e *badError; return e }),
	)
	for job, want := range map[string]string{
		"err": "no money", "panic": "panic: boom", "nil-panic": "panic: panic called with nil argument",
		"runtime-panic": "assignment to entry in nil map", "goexit": "Goexit",
		"bad-error": "nil pointer dereference",
	} {
		runs := b.waitRuns(job, reached(1, state.Failed))
		require.Contains(t, runs[0].Error, want)
	}
	require.Equal(t, state.ReasonPanic, b.runs("panic")[0].Reason)
	require.Contains(t, b.runs("panic")[0].Error, "scheduler_test.go", "the stack says where")
	b.waitRuns("ok", reached(2, state.Succeeded))
	i.stop()
}

func TestTimeLimit(t *testing.T) {
	b := newBench(t)
	j := secondly("endless", func(ctx context.Context, _ *Run) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	j.Timeout = 200 * time.Millisecond
	i := b.start(Config{}, j)
	runs := b.waitRuns("endless", reached(1, state.Failed))
	require.Equal(t, state.ReasonTimeout, runs[0].Reason)
	require.Equal(t, int64(200), runs[0].TimeoutMS)
	i.stop()
}

func TestAHandlerThatIgnoresItsContextIsReported(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	stubborn := secondly("stubborn", func(context.Context, *Run) error { <-release; return nil })
	stubborn.Timeout, stubborn.Grace = 100*time.Millisecond, 100*time.Millisecond
	i := b.start(Config{}, stubborn, secondly("ok", quick))
	i.waitFor(func(ev Event) bool {
		o, ok := ev.(Overrunning)
		return ok && errors.Is(o.Cause, ErrTimeout)
	})
	n := count(b.runs("ok"), state.Succeeded)
	b.waitRuns("ok", reached(n+1, state.Succeeded)) // the scheduler goes on
	lock, err := b.store.LockOf(t.Context(), "stubborn", "x")
	require.NoError(t, err)
	require.NotNil(t, lock, "it holds its lock")
	close(release)
	i.stop()
}

func revokeLocks(t *testing.T, b *bench) {
	t.Helper()
	resp, err := b.client.Get(t.Context(), b.store.Keys().Locks(), clientv3.WithPrefix())
	require.NoError(t, err)
	require.NotEmpty(t, resp.Kvs)
	_, err = b.client.Revoke(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease))
	require.NoError(t, err)
}

// A lock's lease revoked from outside ends the handler's context at once; the run goes on as its next
// attempt, with a greater fencing token.
func TestALostLockStopsTheRunAndItIsResumed(t *testing.T) {
	b := newBench(t)
	causes, attempts, tokens := make(chan error, 10), make(chan int, 10), make(chan int64, 10)
	j := secondly("work", func(ctx context.Context, run *Run) error {
		attempts <- run.Attempt()
		tokens <- run.FencingToken()
		if run.Attempt() > 1 {
			return nil
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	j.LockTTL = 30 * time.Second // so that the next renewal is far away
	i := b.start(Config{}, j)
	require.Equal(t, 1, <-attempts)
	start := time.Now()
	revokeLocks(t, b)
	require.ErrorIs(t, <-causes, ErrLockLost)
	require.Less(t, time.Since(start), 5*time.Second)
	require.Equal(t, 2, <-attempts)
	require.Less(t, <-tokens, <-tokens)
	runs := b.waitRuns("work", reached(1, state.Succeeded))
	i.stop()
	require.Equal(t, 2, runs[0].Attempt)
	require.Len(t, runs[0].Attempts, 1)
	require.Equal(t, state.ReasonInstanceLost, runs[0].Attempts[0].Reason)
	require.Equal(t, int64(1), b.status("work").RecoveredTotal)
	b.requireEachTimeOnce("work")
}

func TestALostLockFailsTheRunIfItsJobSaysSo(t *testing.T) {
	b := newBench(t)
	started := make(chan struct{}, 10)
	j := secondly("work", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	j.Recovery.Policy = Fail
	i := b.start(Config{}, j)
	<-started
	revokeLocks(t, b)
	runs := b.waitRuns("work", reached(1, state.Failed))
	require.Equal(t, state.ReasonInstanceLost, runs[0].Reason)
	require.Equal(t, 1, runs[0].Attempt)
	<-started // the next scheduled time runs
	i.cfg.DrainTimeout = -1
	i.stop()
}

// An owner that lost only its lock may still record the truth.
func TestWorkThatWasDoneThoughTheLockWasLostIsRecorded(t *testing.T) {
	b := newBench(t)
	started, goOn := make(chan struct{}, 10), make(chan struct{})
	i := b.start(Config{}, secondly("work", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		<-ctx.Done()
		<-goOn
		return nil
	}))
	<-started
	revokeLocks(t, b)
	close(goOn)
	runs := b.waitRuns("work", reached(1, state.Succeeded))
	require.Equal(t, 1, runs[0].Attempt)
	i.cfg.DrainTimeout = -1
	i.stop()
}

func TestDrainLetsRunsFinish(t *testing.T) {
	b := newBench(t)
	started, goOn := make(chan struct{}, 10), make(chan struct{})
	i := b.start(Config{}, secondly("work", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	<-started
	stopped := make(chan struct{})
	go func() { i.stop(); close(stopped) }()
	i.waitFor(func(ev Event) bool { _, ok := ev.(Deposed); return ok }) // leadership goes first
	close(goOn)
	<-stopped
	runs := b.runs("work")
	require.Equal(t, state.Succeeded, runs[0].Status)
	require.Empty(t, started, "nothing starts any more")
}

func TestDrainLimitCancels(t *testing.T) {
	b := newBench(t)
	started := make(chan struct{}, 10)
	i := b.start(Config{DrainTimeout: 200 * time.Millisecond}, secondly("work", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrDraining) {
			panic(fmt.Sprint(context.Cause(ctx)))
		}
		return ctx.Err()
	}))
	<-started
	i.stop()
	runs := b.runs("work")
	require.Equal(t, state.Canceled, runs[0].Status)
	require.Equal(t, state.ReasonDrain, runs[0].Reason)
}

func TestMaxConcurrentIsKeptInTurn(t *testing.T) {
	b := newBench(t)
	var running, most atomic.Int64
	work := func(ctx context.Context, _ *Run) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}
	jobs := make([]Job, 6)
	for n := range jobs {
		jobs[n] = secondly(fmt.Sprint("job-", n), work)
	}
	i := b.start(Config{MaxConcurrent: 2}, jobs...)
	for _, j := range jobs {
		b.waitRuns(j.Name, reached(2, state.Succeeded))
	}
	i.stop()
	require.Equal(t, int64(2), most.Load())
	for _, j := range jobs {
		b.requireEachTimeOnce(j.Name)
	}
}

// A job that waits for a place longer than its period has times to write down before its run. It keeps
// its turn meanwhile: otherwise it would never run.
func TestNoJobStarvesForAPlace(t *testing.T) {
	b := newBench(t)
	work := func(ctx context.Context, _ *Run) error {
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}
	jobs := make([]Job, 5)
	for n := range jobs {
		jobs[n] = secondly(fmt.Sprint("job-", n), work)
	}
	i := b.start(Config{MaxConcurrent: 1}, jobs...)
	for _, j := range jobs {
		b.waitRuns(j.Name, reached(2, state.Succeeded))
	}
	i.stop()
	for _, j := range jobs {
		b.requireEachTimeOnce(j.Name)
	}
	require.Zero(t, i.attempts.slots)
}

func TestRunMayBeCalledOnce(t *testing.T) {
	b := newBench(t)
	i := b.start(Config{}, secondly("tick", quick))
	i.waitLeading()
	require.ErrorIs(t, i.Run(t.Context()), ErrRunning)
}

func TestTwoSchedulersInOneProcess(t *testing.T) {
	b := newBench(t)
	one := b.start(Config{Namespace: "one"}, secondly("tick", quick))
	two := b.start(Config{Namespace: "two"}, secondly("tick", quick))
	recorded := func(ev Event) bool { _, ok := ev.(Recorded); return ok }
	one.waitFor(recorded)
	two.waitFor(recorded)
}

// G01: etcd or an operator revokes a lock while its instance lives and does not lead. Whoever leads
// leaves the handler its grace before going on with the run: two attempts never overlap.
func TestALockRevokedUnderALivingInstance(t *testing.T) {
	b := newBench(t)
	var running, most atomic.Int64
	attempts := make(chan int, 10)
	work := func(ctx context.Context, run *Run) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		attempts <- run.Attempt()
		if run.Attempt() > 1 {
			return nil
		}
		<-ctx.Done()
		timer := time.NewTimer(500 * time.Millisecond) // it takes a while to stop, within its grace
		defer timer.Stop()
		<-timer.C
		return ctx.Err()
	}
	a := b.start(Config{InstanceID: "a"}, secondly("work", work))
	require.Equal(t, 1, <-attempts)
	c := b.start(Config{InstanceID: "c"}, secondly("work", work))
	b.handOver(a, c)
	b.waitRuns("work", reached(1, state.Skipped)) // c knows that it runs elsewhere
	revokeLocks(t, b)
	require.Equal(t, 2, <-attempts)
	runs := b.waitRuns("work", reached(1, state.Succeeded))
	require.Equal(t, c.ID(), runs[0].Instance)
	require.Equal(t, int64(1), most.Load())
	a.stop()
	c.stop()
	b.requireEachTimeOnce("work")
}
