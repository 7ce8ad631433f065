package cronrunner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcdcron/etcdcron/state"
)

// held is a job whose schedule is far away and whose runs go on until they are let go or told to stop.
type held struct {
	Job
	b       *bench
	release chan struct{}

	mu      sync.Mutex
	running map[string]bool
	most    int
	order   []string
	causes  map[string]error
}

func newHeld(b *bench, policy Overlap) *held {
	h := &held{b: b, release: make(chan struct{}), running: map[string]bool{}, causes: map[string]error{}}
	h.Job = Job{Name: "held", Schedule: "0 0 1 1 *", Overlap: policy, LockTTL: 3 * time.Second, Handler: h.handle}
	return h
}

func (h *held) handle(ctx context.Context, run *Run) error {
	h.mu.Lock()
	h.running[run.ID()] = true
	h.most = max(h.most, len(h.running))
	h.order = append(h.order, run.ID())
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, run.ID())
	}()
	select {
	case <-h.release:
		return nil
	case <-ctx.Done():
		h.mu.Lock()
		h.causes[run.ID()] = context.Cause(ctx)
		h.mu.Unlock()
		return ctx.Err()
	}
}

// trigger asks for a run and waits until it was acted on.
func (h *held) trigger() state.Run {
	h.b.t.Helper()
	require.Eventually(h.b.t, func() bool { return h.b.defined(h.Name) }, patience, 5*time.Millisecond)
	return h.b.acted(h.b.submit(state.Request{Kind: state.AskTrigger, Job: h.Name, By: "ann", Args: map[string]string{"day": "x"}}))
}

func (b *bench) submit(r state.Request) state.Request {
	b.t.Helper()
	r, err := b.store.Submit(b.t.Context(), r)
	require.NoError(b.t, err)
	return r
}

// acted waits for the record of the run that was asked for.
func (b *bench) acted(r state.Request) state.Run {
	b.t.Helper()
	return b.waitRun(r.Job, r.ID, func(state.Run) bool { return true })
}

func (b *bench) waitRun(job, id string, ok func(state.Run) bool) (run state.Run) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		var err error
		run, _, err = b.store.Run(b.t.Context(), job, id)
		return err == nil && ok(run)
	}, patience, 5*time.Millisecond)
	return run
}

func (b *bench) waitOver(job, id string) state.Run {
	b.t.Helper()
	return b.waitRun(job, id, func(r state.Run) bool { return r.Status.Final() })
}

// requireNoRequests checks that all was acted on.
func (b *bench) requireNoRequests() {
	b.t.Helper()
	left, err := b.store.Requests(b.t.Context())
	require.NoError(b.t, err)
	require.Empty(b.t, left)
}

func TestTriggerRunsTheJobAndTakesNoScheduledTime(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{})
	i := b.start(Config{}, h.Job)
	i.waitLeading()
	r := h.trigger()
	before := b.status("held")
	require.Equal(t, state.Running, r.Status)
	require.Equal(t, state.ByHand, r.Trigger)
	require.Equal(t, "ann", r.RequestedBy)
	require.Equal(t, map[string]string{"day": "x"}, r.Args)
	require.True(t, before.NextRunAt.After(time.Now()))
	close(h.release)
	require.Equal(t, state.Succeeded, b.waitOver("held", r.ID).Status)

	again := b.acted(b.submit(state.Request{Kind: state.AskRetry, Job: "held", Run: r.ID, By: "bob"}))
	require.Equal(t, state.ByRetry, again.Trigger)
	require.Equal(t, r.ID, again.RetryOf)
	require.Equal(t, r.ScheduledAt, again.ScheduledAt, "it works on the same period")
	require.Equal(t, r.Args, again.Args)
	require.Equal(t, state.Succeeded, b.waitOver("held", again.ID).Status)
	i.stop()
	after := b.status("held")
	require.Equal(t, before.Cursor, after.Cursor)
	require.Equal(t, before.NextRunAt, after.NextRunAt)
	require.Equal(t, int64(2), after.SucceededTotal)
	require.Zero(t, after.ScheduledRunsTotal)
	b.requireNoRequests()
}

func TestTriggersGoThroughTheOverlapPolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy Overlap
		acted  []state.RunStatus // of three triggers, when the third was acted on
		ended  []state.RunStatus
		reason []string
		most   int
	}{
		{
			Overlap{Policy: Skip},
			[]state.RunStatus{state.Running, state.Skipped, state.Skipped},
			[]state.RunStatus{state.Succeeded, state.Skipped, state.Skipped},
			[]string{"", state.ReasonOverlap, state.ReasonOverlap},
			1,
		},
		{
			Overlap{Policy: Queue, Limit: 1},
			[]state.RunStatus{state.Running, state.Pending, state.Skipped},
			[]state.RunStatus{state.Succeeded, state.Succeeded, state.Skipped},
			[]string{"", "", state.ReasonQueueFull},
			1,
		},
		{
			Overlap{Policy: Coalesce},
			[]state.RunStatus{state.Running, state.Pending, state.Skipped},
			[]state.RunStatus{state.Succeeded, state.Succeeded, state.Skipped},
			[]string{"", "", state.ReasonOverlap},
			1,
		},
		{
			Overlap{Policy: Allow, Limit: 2},
			[]state.RunStatus{state.Running, state.Running, state.Skipped},
			[]state.RunStatus{state.Succeeded, state.Succeeded, state.Skipped},
			[]string{"", "", state.ReasonOverlap},
			2,
		},
	} {
		t.Run(string(tc.policy.Policy), func(t *testing.T) {
			b := newBench(t)
			h := newHeld(b, tc.policy)
			i := b.start(Config{}, h.Job)
			i.waitLeading()
			var ids []string
			var acted, ended []state.RunStatus
			var reasons []string
			for range 3 {
				r := h.trigger()
				ids, acted = append(ids, r.ID), append(acted, r.Status)
			}
			close(h.release)
			for _, id := range ids {
				r := b.waitOver("held", id)
				ended, reasons = append(ended, r.Status), append(reasons, r.Reason)
			}
			i.stop()
			require.Equal(t, tc.acted, acted)
			require.Equal(t, tc.ended, ended)
			require.Equal(t, tc.reason, reasons)
			require.Equal(t, tc.most, h.most)
			b.requireNoRequests()
			b.requireNothingLeft("held")
		})
	}
}

// requireNothingLeft checks invariants I4 and I6 of a job whose runs are all over.
func (b *bench) requireNothingLeft(job string) {
	b.t.Helper()
	counted := map[state.RunStatus]int64{}
	for _, r := range b.runs(job) {
		require.True(b.t, r.Status.Final(), "run %s is %s", r.ID, r.Status)
		if r.Attempt > 0 {
			counted[r.Status]++
		} else {
			counted[r.Status] += r.Times()
		}
	}
	st := b.status(job)
	require.Empty(b.t, st.Live)
	require.Empty(b.t, st.Queue)
	require.Equal(b.t, counted, nonZero(map[state.RunStatus]int64{
		state.Succeeded: st.SucceededTotal, state.Failed: st.FailedTotal, state.Skipped: st.SkippedTotal,
		state.Missed: st.MissedTotal, state.Canceled: st.CanceledTotal,
	}))
}

func TestReplaceEndsWithTheNewest(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Replace})
	i := b.start(Config{}, h.Job)
	i.waitLeading()
	var last state.Run
	for range 5 {
		last = h.trigger()
	}
	running := b.waitRun("held", last.ID, func(r state.Run) bool { return r.Status == state.Running })
	close(h.release)
	require.Equal(t, state.Succeeded, b.waitOver("held", running.ID).Status)
	i.stop()
	require.Equal(t, 1, h.most)
	for _, r := range b.runs("held") {
		if r.ID != last.ID {
			require.Equal(t, state.ReasonReplaced, r.Reason, "%s", r.ID)
			if r.Attempt > 0 {
				require.Equal(t, state.Canceled, r.Status)
				require.ErrorIs(t, h.causes[r.ID], ErrReplaced)
			} else {
				require.Equal(t, state.Skipped, r.Status)
			}
		}
	}
	b.requireNothingLeft("held")
}

// A run that is to be replaced may go on at an instance that no longer leads: it is canceled by request.
func TestReplaceARunElsewhere(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Replace})
	a := b.start(Config{InstanceID: "a"}, h.Job)
	a.waitLeading()
	first := h.trigger()
	d := b.start(Config{InstanceID: "d"}, h.Job)
	b.handOver(a, d)
	second := h.trigger()
	b.waitRun("held", second.ID, func(r state.Run) bool { return r.Status == state.Running })
	r := b.waitOver("held", first.ID)
	require.Equal(t, state.Canceled, r.Status)
	require.Equal(t, state.ReasonReplaced, r.Reason)
	close(h.release)
	b.waitOver("held", second.ID)
	a.stop()
	d.stop()
	require.Equal(t, 1, h.most)
	b.requireNoRequests()
	b.requireNothingLeft("held")
}

func TestCancelARunThatIsRunningOrWaits(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Queue})
	a := b.start(Config{InstanceID: "a"}, h.Job)
	a.waitLeading()
	running, waiting, last := h.trigger(), h.trigger(), h.trigger()
	cancel := func(r state.Run) state.Run {
		b.submit(state.Request{Kind: state.AskCancel, Job: "held", Run: r.ID, By: "ann", Reason: "wrong data"})
		return b.waitOver("held", r.ID)
	}
	r := cancel(waiting)
	require.Equal(t, state.Canceled, r.Status)
	require.Contains(t, r.Error, "ann: wrong data")

	d := b.start(Config{InstanceID: "d"}, h.Job)
	b.handOver(a, d)
	r = cancel(running) // by its owner, which no longer leads
	require.Equal(t, state.Canceled, r.Status)
	require.Equal(t, state.ReasonRequested, r.Reason)
	require.Contains(t, r.Error, "canceled by ann: wrong data")
	require.ErrorIs(t, h.causes[r.ID], ErrCanceled)
	b.waitRun("held", last.ID, func(r state.Run) bool { return r.Status == state.Running })
	close(h.release)
	b.waitOver("held", last.ID)
	a.stop()
	d.stop()
	require.Equal(t, []string{running.ID, last.ID}, h.order)
	b.requireNoRequests()
	b.requireNothingLeft("held")
}

// A cancel that comes when its run is over, or for one whose instance is lost, is settled too.
func TestALateCancelIsTakenAway(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{})
	close(h.release)
	i := b.start(Config{}, h.Job)
	i.waitLeading()
	r := b.waitOver("held", h.trigger().ID)
	_, err := b.client.Put(t.Context(), b.store.Keys().Cancel("held", r.ID), fmt.Sprintf(`{"kind":"cancel","job":"held","run":%q}`, r.ID))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		left, err := b.store.Requests(t.Context())
		return err == nil && len(left) == 0
	}, patience, 10*time.Millisecond)
	i.stop()
	require.Equal(t, state.Succeeded, b.runs("held")[0].Status)
}

func TestARunThatIsToBeCanceledIsNotResumed(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("victim", "gone")
	st.deleteKey(st.s.store.Keys().Lock("victim"))
	st.s.attempts.cancels["victim/"+owned.Run.ID] = state.Request{By: "ann"}
	require.NoError(t, st.recoverJob("victim", js.job, nil, false)(st.term))
	r := st.waitRuns("victim", reached(1, state.Canceled))[0]
	require.Equal(t, state.ReasonRequested, r.Reason)
	require.Empty(t, st.status("victim").Live)
}

// Whatever is asked is acted on once, though the leader changes in the middle.
func TestRequestsSurviveChangesOfLeader(t *testing.T) {
	b := newBench(t)
	j := Job{Name: "asked", Schedule: "0 0 1 1 *", Overlap: Overlap{Policy: Queue, Limit: MaxOverlapLimit}, LockTTL: 3 * time.Second, Handler: quick}
	instances := []*instance{b.start(Config{InstanceID: "a"}, j), b.start(Config{InstanceID: "c"}, j), b.start(Config{InstanceID: "d"}, j)}
	b.waitCandidates(3)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(instances, func(i *instance) bool { return i.leads() }) && b.defined("asked")
	}, patience, 5*time.Millisecond)
	var wg sync.WaitGroup
	ids := make(chan string, 200)
	for range 10 {
		wg.Go(func() {
			for range 20 {
				r, err := b.store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: "asked"})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- r.ID
			}
		})
	}
	for range 4 {
		b.passed(100 * time.Millisecond)
		for _, i := range instances {
			if i.leads() {
				require.NoError(t, i.Elector().Resign(t.Context()))
			}
		}
	}
	wg.Wait()
	close(ids)
	for id := range ids {
		require.Equal(t, state.Succeeded, b.waitOver("asked", id).Status)
	}
	for _, i := range instances {
		i.stop()
	}
	require.Len(t, b.runs("asked"), 200)
	b.requireNoRequests()
	b.requireNothingLeft("asked")
}

// leads reports whether the last that was heard of the instance is that it was elected.
func (i *instance) leads() (leads bool) {
	i.events.mu.Lock()
	defer i.events.mu.Unlock()
	for _, ev := range i.events.all {
		switch ev.(type) {
		case Elected:
			leads = true
		case Deposed:
			leads = false
		}
	}
	return leads
}

func (b *bench) defined(job string) bool {
	def, err := b.store.Job(b.t.Context(), job)
	return err == nil && def.SpecRev != 0
}

func TestBackfillRunsEachTimeOfTheRangeOnce(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var order []time.Time
	running, most := 0, 0
	j := Job{Name: "report", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: func(_ context.Context, run *Run) error {
		mu.Lock()
		running++
		most = max(most, running)
		order = append(order, run.ScheduledAt())
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
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

func TestARequestForAJobThatIsGoneIsAnswered(t *testing.T) {
	b := newBench(t)
	old := Job{Name: "old", Schedule: "0 0 1 1 *", Handler: quick}
	first := b.start(Config{}, old)
	require.Eventually(t, func() bool { return b.defined("old") }, patience, 5*time.Millisecond)
	first.stop()
	r := b.submit(state.Request{Kind: state.AskTrigger, Job: "old"})
	second := b.start(Config{}, Job{Name: "new", Schedule: "0 0 1 1 *", Handler: quick})
	run := b.acted(r)
	second.stop()
	require.Equal(t, state.Skipped, run.Status)
	require.Equal(t, state.ReasonRetired, run.Reason)
	b.requireNoRequests()
}

func TestARequestThatCannotBeReadIsLeftAlone(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{})
	close(h.release)
	key := b.store.Keys().Request("broken")
	_, err := b.client.Put(t.Context(), key, "{broken")
	require.NoError(t, err)
	i := b.start(Config{}, h.Job)
	i.waitLeading()
	require.Equal(t, state.Succeeded, b.waitOver("held", h.trigger().ID).Status)
	i.stop()
	resp, err := b.client.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
}

// What a later version, or a person, has put there and makes no sense here is left alone, and runs nothing.
func TestARequestThatMakesNoSenseRunsNothing(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{})
	close(h.release)
	i := b.start(Config{}, h.Job)
	keys := b.store.Keys()
	for key, value := range map[string]string{
		keys.Request("20261130T010000Z-x00abcd"): `{"kind":"disable","id":"20261130T010000Z-x00abcd","job":"held"}`,
		keys.Request("byhand"):                   `{"kind":"trigger","job":"held"}`,
		keys.Request("other"):                    `{"kind":"trigger","job":"held","id":"20261130T010000Z-m00abcd"}`,
		keys.Request("20261130T010000Z"):         `{"kind":"trigger","job":"held","id":"20261130T010000Z"}`,
		keys.Cancel("held", "x"):                 `{"kind":"cancel","job":"held","run":"y"}`,
	} {
		_, err := b.client.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	r := h.trigger() // asked for after them
	b.waitOver("held", r.ID)
	i.stop()
	require.Len(t, b.runs("held"), 1)
	require.Equal(t, []string{r.ID}, h.order)
	resp, err := b.client.Get(t.Context(), keys.Requests(), prefix)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 5)
	b.requireNothingLeft("held")
}

// Very many requests for a job that is not among ours hold up nobody else, and are answered one by one.
func TestManyRequestsForAJobThatIsGoneHoldUpNobody(t *testing.T) {
	b := newBench(t)
	old := Job{Name: "old", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: quick}
	first := b.start(Config{}, old)
	require.Eventually(t, func() bool { return b.defined("old") }, patience, 5*time.Millisecond)
	first.stop()
	const n = 600
	for range n {
		b.submit(state.Request{Kind: state.AskTrigger, Job: "old"})
	}
	second := b.start(Config{}, secondly("tick", quick))
	second.waitFor(func(ev Event) bool { e, ok := ev.(Recorded); return ok && e.Run.Job == "tick" })
	left, err := b.store.Requests(t.Context())
	require.NoError(t, err)
	t.Logf("%d of %d are left when the other job has run", len(left), n)
	require.Eventually(t, func() bool { return b.status("old").SkippedByReason[state.ReasonRetired] > 20 }, patience, 20*time.Millisecond)
	second.stop()
	left, err = b.store.Requests(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(n), b.status("old").SkippedByReason[state.ReasonRetired]+int64(len(left)), "each is answered, or stands")
}

// A job whose status is gone has nothing to account for a refusal in; one that comes back meanwhile is asked.
func TestARefusalThatCannotBeAccountedFor(t *testing.T) {
	b := newBench(t)
	old := Job{Name: "old", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: quick}
	first := b.start(Config{}, old)
	require.Eventually(t, func() bool { return b.defined("old") }, patience, 5*time.Millisecond)
	first.stop()
	b.submit(state.Request{Kind: state.AskTrigger, Job: "old"})
	_, err := b.client.Delete(t.Context(), b.store.Keys().Status("old"))
	require.NoError(t, err)
	second := b.start(Config{}, Job{Name: "new", Schedule: "0 0 1 1 *", LockTTL: 3 * time.Second, Handler: quick})
	require.Eventually(t, func() bool { left, err := b.store.Requests(t.Context()); return err == nil && len(left) == 0 }, patience, 20*time.Millisecond)
	second.stop()
}

// A request that was refused since it stands anew is not forgotten.
func TestWhatStandsAnewIsNotForgotten(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("x", "elsewhere")
	put := func(next string, rev int64) {
		st.asked(&mvccpb.KeyValue{
			Key: []byte(st.s.store.Keys().Request("20260101T000000Z-babcdef")), ModRevision: rev,
			Value: []byte(`{"kind":"backfill","id":"20260101T000000Z-babcdef","job":"x","from":"2026-01-01T00:00:00Z","to":"2026-01-03T00:00:00Z","next":"` + next + `"}`),
		})
	}
	put("2026-01-01T00:00:00Z", 10)
	old := st.asks["x"].backfills[0]
	put("2026-01-02T00:00:00Z", 12) // the watch tells of what is left, which an earlier try has put
	require.NoError(t, st.settledAsked(js, old, state.View{}, state.ErrRequestGone))
	require.Len(t, st.asks["x"].backfills, 1)
	require.Equal(t, int64(12), st.asks["x"].backfills[0].Revision)
}

func TestALostRecordOfAManualRunTakesNoScheduledTime(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Queue})
	h.MaxRuns = 5
	i := b.start(Config{}, h.Job)
	h.trigger()
	waiting := h.trigger()
	before := b.status("held")
	_, err := b.client.Delete(t.Context(), b.store.Keys().Run("held", waiting.ID))
	require.NoError(t, err)
	close(h.release)
	require.Equal(t, state.ReasonRecordLost, b.waitOver("held", waiting.ID).Reason)
	after := b.status("held")
	i.stop()
	require.Equal(t, before.Cursor, after.Cursor)
	require.Equal(t, before.ScheduledRunsTotal, after.ScheduledRunsTotal)
}

func TestWhatWaitsGoesOnWaitingWhileItsJobIsPaused(t *testing.T) {
	b := newBench(t)
	h := newHeld(b, Overlap{Policy: Queue})
	i := b.start(Config{}, h.Job, secondly("tick", quick))
	running, waiting := h.trigger(), h.trigger()
	_, err := b.store.Pause(t.Context(), "held", "ann", "")
	require.NoError(t, err)
	close(h.release)
	b.waitOver("held", running.ID)
	n := len(b.runs("tick"))
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	r, _, err := b.store.Run(t.Context(), "held", waiting.ID)
	require.NoError(t, err)
	require.Equal(t, state.Pending, r.Status)
	_, err = b.store.Resume(t.Context(), "held", "ann", "")
	require.NoError(t, err)
	require.Equal(t, state.Succeeded, b.waitOver("held", waiting.ID).Status)
	i.stop()
	b.requireNothingLeft("held")
}

// Which requests are acted on now, in which situation of their job.
func TestNextAsked(t *testing.T) {
	trigger := state.Standing{Request: state.Request{Kind: state.AskTrigger, Job: "x", ID: "20261130T010000Z-m00abcd"}}
	backfill := state.Standing{Request: state.Request{Kind: state.AskBackfill, Job: "x", ID: "20261130T010000Z-b00abcd", From: noon.Add(-time.Hour), Next: noon.Add(-time.Hour), To: noon}}
	for name, tc := range map[string]struct {
		asks   asks
		room   int
		queue  []string
		paused bool
		limit  int // of Allow
		claims bool
		writes bool
	}{
		"nothing":                              {},
		"a trigger of an idle job":             {asks: asks{runs: []state.Standing{trigger}}, room: 1, claims: true},
		"a trigger of a busy one":              {asks: asks{runs: []state.Standing{trigger}}, writes: true},
		"a trigger of one that is paused":      {asks: asks{runs: []state.Standing{trigger}}, room: 1, paused: true, writes: true},
		"a backfill of an idle job":            {asks: asks{backfills: []state.Standing{backfill}}, room: 1, claims: true},
		"a backfill waits while it is busy":    {asks: asks{backfills: []state.Standing{backfill}}},
		"a backfill waits for what waits":      {asks: asks{backfills: []state.Standing{backfill}}, room: 1, queue: []string{"x"}},
		"a backfill waits while it is paused":  {asks: asks{backfills: []state.Standing{backfill}}, room: 1, paused: true},
		"a backfill is one run at a time":      {asks: asks{backfills: []state.Standing{backfill}}, room: 2, limit: 3},
		"a backfill of an idle job of several": {asks: asks{backfills: []state.Standing{backfill}}, room: 3, limit: 3, claims: true},
		"triggers come before backfills":       {asks: asks{runs: []state.Standing{trigger}, backfills: []state.Standing{backfill}}, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			overlap := Overlap{}
			if tc.limit > 0 {
				overlap = Overlap{Policy: Allow, Limit: tc.limit}
			}
			js := &jobState{name: "x", job: mustCompile(t, Job{Name: "x", Schedule: "* * * * *", Overlap: overlap})}
			js.def.View.Status.Queue, js.def.Control.Paused = tc.queue, tc.paused
			tm := &term{asks: map[string]*asks{"x": &tc.asks}}
			next := tm.nextAsked(js, tc.room, noon)
			require.Equal(t, tc.claims, next.claims)
			require.Equal(t, tc.claims || tc.writes, next.op != nil)
		})
	}
}
