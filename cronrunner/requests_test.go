package cronrunner

import (
	"context"
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
