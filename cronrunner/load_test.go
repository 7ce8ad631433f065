package cronrunner

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/etcdcron/etcdcron/state"
)

func TestDefinition(t *testing.T) {
	now := noon
	j := mustCompile(t, Job{Schedule: "* * * * *"})
	spec, status, changed := definition(j, state.Definition{}, "code", now)
	require.True(t, changed)
	require.NotEmpty(t, spec.UID)
	require.Equal(t, spec.UID, status.UID)
	require.Equal(t, now, status.Cursor, "nothing before its first sight is caught up")
	require.Equal(t, now.Add(time.Minute), status.NextRunAt)
	was := state.Definition{Spec: spec, SpecRev: 1, View: state.View{Status: status, Revision: 1}}

	later := now.Add(time.Hour)
	_, _, changed = definition(j, was, "code", later)
	require.False(t, changed, "an idle system writes nothing")

	edited := mustCompile(t, Job{Schedule: "* * * * *", Timeout: time.Minute})
	spec2, status2, changed := definition(edited, was, "code", later)
	require.True(t, changed)
	require.Equal(t, spec.UID, spec2.UID)
	require.Equal(t, spec.CreatedAt, spec2.CreatedAt)
	require.Equal(t, now, status2.Cursor, "editing other fields does not move the cursor")

	for name, moved := range map[string]*job{
		"schedule": mustCompile(t, Job{Schedule: "0 8 * * *"}),
	} {
		_, status3, changed := definition(moved, was, "code", later)
		require.True(t, changed, name)
		require.Equal(t, later, status3.Cursor, "an edited %s catches nothing up", name)
	}

	retired := was
	retired.Spec.Retired = true
	spec4, status4, changed := definition(j, retired, "code", later)
	require.True(t, changed)
	require.False(t, spec4.Retired)
	require.Equal(t, later, status4.Cursor, "a job that comes back catches nothing up")
	require.Equal(t, spec.UID, spec4.UID)

	recreated := was
	recreated.View = state.View{}
	_, status5, changed := definition(j, recreated, "code", later)
	require.True(t, changed)
	require.Equal(t, state.JobStatus{UID: spec.UID, Cursor: later, NextRunAt: later.Add(time.Minute)}, status5)
}

// A change of leader writes nothing about jobs that are as they were.
func TestAChangeOfLeaderWritesNothingAboutJobs(t *testing.T) {
	b := newBench(t)
	idle := Job{Name: "yearly", Schedule: "@yearly", Handler: quick}
	planned := func(ev Event) bool { _, ok := ev.(Planned); return ok }
	first := b.start(Config{}, idle)
	first.waitFor(planned)
	before := b.must(b.store.Job(t.Context(), "yearly"))
	second := b.start(Config{}, idle)
	b.handOver(first, second)
	second.waitFor(planned)
	require.Equal(t, before, b.must(b.store.Job(t.Context(), "yearly")), "neither spec nor status was written again")
}

func (b *bench) must(d state.Definition, err error) state.Definition {
	b.t.Helper()
	require.NoError(b.t, err)
	return d
}

func TestABadRecordIsAloneAndTakenUpWhenMended(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"spec", "status", "control"} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t)
			first := b.start(Config{}, secondly("bad", quick), secondly("good", quick))
			b.waitRuns("bad", reached(1, state.Succeeded))
			first.stop()
			keys := b.store.Keys()
			key := map[string]string{"spec": keys.Spec("bad"), "status": keys.Status("bad"), "control": keys.Control("bad")}[what]
			resp, err := b.client.Get(t.Context(), key)
			require.NoError(t, err)
			_, err = b.client.Put(t.Context(), key, "{broken")
			require.NoError(t, err)

			second := b.start(Config{}, secondly("bad", quick), secondly("good", quick))
			n := count(b.runs("good"), state.Succeeded)
			b.waitRuns("good", reached(n+2, state.Succeeded))
			require.ErrorIs(t, b.must(b.store.Job(t.Context(), "bad")).Broken, state.ErrBadRecord)

			if len(resp.Kvs) == 0 {
				_, err = b.client.Delete(t.Context(), key)
			} else {
				_, err = b.client.Put(t.Context(), key, string(resp.Kvs[0].Value))
			}
			require.NoError(t, err)
			n = count(b.runs("bad"), state.Succeeded)
			b.waitRuns("bad", reached(n+2, state.Succeeded))
			second.stop()
			b.requireEachTimeOnce("bad")
		})
	}
}

func TestAPausedJobStartsNothingAndCatchesUpNothing(t *testing.T) {
	b := newBench(t)
	c := &stoppedClock{}
	i := b.start(Config{Now: c.now}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	_, err := b.store.Pause(t.Context(), "tick", "ann", "the bank is closed")
	require.NoError(t, err)
	// Once the pause stands, nothing more is claimed.
	claimed := len(b.runs("tick"))
	paused := time.Now()
	b.passed(3 * time.Second)
	require.Len(t, b.runs("tick"), claimed, "while it stands still nothing is written either")
	_, err = b.store.Resume(t.Context(), "tick", "bob", "")
	require.NoError(t, err)
	runs := b.waitRuns("tick", func(runs []state.Run) bool { return len(runs) >= claimed+3 })
	c.stop()
	i.stop()
	require.Equal(t, state.Skipped, runs[claimed].Status)
	require.Equal(t, state.ReasonPaused, runs[claimed].Reason)
	require.GreaterOrEqual(t, runs[claimed].Times(), int64(2))
	require.False(t, runs[claimed+1].ScheduledAt.Before(paused.Add(2*time.Second)), "the first run is at the next time")
	require.Equal(t, state.BySchedule, runs[claimed+1].Trigger)
	b.requireEachTimeOnce("tick")
}

// Paused and resumed while nobody led: what fell due before it was resumed was paused, not missed.
func TestResumedWhileNobodyLed(t *testing.T) {
	b := newBench(t)
	first := b.start(Config{}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	first.stop()
	n := len(b.runs("tick"))
	_, err := b.store.Pause(t.Context(), "tick", "ann", "")
	require.NoError(t, err)
	b.passed(2 * time.Second)
	_, err = b.store.Resume(t.Context(), "tick", "ann", "")
	require.NoError(t, err)
	second := b.start(Config{}, secondly("tick", quick))
	runs := b.waitRuns("tick", func(runs []state.Run) bool { return len(runs) >= n+2 })
	second.stop()
	require.Equal(t, state.ReasonPaused, runs[n].Reason)
	b.requireEachTimeOnce("tick")
}

func TestAJobThatIsGoneIsRetiredAndItsRunsAreEnded(t *testing.T) {
	b := newBench(t)
	started := make(chan struct{}, 10)
	old := secondly("old", func(ctx context.Context, _ *Run) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	first := b.start(Config{}, old, secondly("tick", quick))
	<-started
	// As if the process had died: its lease goes, and it never records the end.
	second := b.start(Config{}, secondly("tick", quick))
	b.handOver(first, second)
	require.Eventually(t, func() bool { return b.must(b.store.Job(t.Context(), "old")).Spec.Retired }, patience, 20*time.Millisecond)
	revokeLocks(t, b)
	runs := b.waitRuns("old", reached(1, state.Failed))
	require.Equal(t, state.ReasonInstanceLost, runs[0].Reason)
	require.Empty(t, b.status("old").Live)
	isRetired := func(ev Event) bool { return ev == Retired{Job: "old"} }
	second.waitFor(isRetired)
	b.handOver(second, first)
	require.False(t, first.events.has(isRetired), "it is among this one's jobs")
}

func TestARunWhoseRecordWasDeletedIsOwedAnEnd(t *testing.T) {
	b := newBench(t)
	i := b.start(Config{}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	i.stop()
	b.putStatus("tick", func(st *state.JobStatus) { st.Live, st.Running = []string{"20200101T000000Z"}, 1 })

	b.start(Config{}, secondly("tick", quick))
	require.Eventually(t, func() bool {
		r, _, err := b.store.Run(t.Context(), "tick", "20200101T000000Z")
		return err == nil && r.Status == state.Failed
	}, patience, 20*time.Millisecond)
}

func TestRegisterWhileRunning(t *testing.T) {
	b := newBench(t)
	i := b.start(Config{}, secondly("a", quick))
	i.waitLeading()
	require.NoError(t, i.Register(secondly("b", quick)))
	b.waitRuns("b", reached(1, state.Succeeded))
}

// clock is a wall clock that can be set.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.offset.Load())) }

func TestAClockSetBackRepeatsNothing(t *testing.T) {
	b := newBench(t)
	c := &clock{}
	i := b.start(Config{Now: c.now}, secondly("tick", quick))
	runs := b.waitRuns("tick", reached(2, state.Succeeded))
	c.offset.Add(-int64(3 * time.Second))
	n := len(runs)
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	i.stop()
	b.requireEachTimeOnce("tick")
}

func TestAClockSetForwardCatchesUpOnce(t *testing.T) {
	b := newBench(t)
	c := &clock{}
	i := b.start(Config{Now: c.now}, secondly("tick", quick))
	b.waitRuns("tick", reached(2, state.Succeeded))
	c.offset.Add(int64(2 * time.Hour))
	runs := b.waitRuns("tick", reached(1, state.Missed))
	b.waitRuns("tick", reached(count(runs, state.Succeeded)+2, state.Succeeded))
	i.stop()
	missed := 0
	for _, r := range b.runs("tick") {
		if r.Status == state.Missed && r.Times() > 7000 { // a busy machine may miss a second beside it
			missed++
		}
	}
	require.Equal(t, 1, missed, "one record for the whole gap")
	b.requireEachTimeOnce("tick")
}

// A job that only a follower has never runs; the follower says so.
func TestAFollowerNamesWhatTheLeaderHasNot(t *testing.T) {
	b := newBench(t)
	a := b.start(Config{}, secondly("both", quick), secondly("edited", quick))
	a.waitLeading()
	b.waitRuns("both", reached(1, state.Succeeded))
	edited := secondly("edited", quick)
	edited.Timeout = time.Minute
	core, logs := observer.New(zap.WarnLevel)
	b.start(Config{Logger: zap.New(core)}, secondly("both", quick), edited, secondly("mine", quick))
	var fields map[string]any
	require.Eventually(t, func() bool { // each time that it leads anew, on a machine that stalls
		for _, warned := range logs.FilterMessageSnippet("the leader has other jobs").All() {
			fields = warned.ContextMap()
		}
		return fields["leader"] == a.ID()
	}, patience, 20*time.Millisecond)
	require.Equal(t, []any{"mine"}, fields["only_here"])
	require.Equal(t, []any{"edited"}, fields["different"])
}

// A new leader takes the time at which a job was resumed from whoever did, but never for one to come.
func TestResumedByAClockThatIsAhead(t *testing.T) {
	b := newBench(t)
	first := b.start(Config{}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	first.stop()
	value := fmt.Sprintf(`{"paused":false,"by":"ann","at":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	_, err := b.client.Put(t.Context(), b.store.Keys().Control("tick"), value)
	require.NoError(t, err)
	n := count(b.runs("tick"), state.Succeeded)
	second := b.start(Config{}, secondly("tick", quick))
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	second.stop()
}

// What counts is when the job was resumed, not when the leader came to read it.
func TestResumedBeforeTheLeaderHeardOfIt(t *testing.T) {
	at := noon.Add(500 * time.Millisecond)
	for name, tc := range map[string]struct {
		asked   time.Time // by the clock of whoever resumed it
		pausing time.Time // when it was last known to be paused
		heard   time.Time // by the watch; zero if the read was faster
		read    time.Time
		want    time.Time
	}{
		"told at once":                 {at, noon.Add(-time.Hour), at.Add(time.Millisecond), at.Add(2500 * time.Millisecond), at},
		"read before the watch":        {at, noon.Add(-time.Hour), time.Time{}, at.Add(2500 * time.Millisecond), at},
		"a clock that is ahead":        {at.Add(time.Hour), noon.Add(-time.Hour), at.Add(time.Second), at.Add(5 * time.Second), at.Add(time.Second)},
		"a clock that is far behind":   {at.Add(-10 * time.Minute), noon.Add(-time.Hour), at.Add(time.Second), at.Add(5 * time.Second), at.Add(time.Second)},
		"before it was known to pause": {at.Add(-time.Second), at, at.Add(time.Second), at.Add(5 * time.Second), at.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			st := &term{s: &Scheduler{cfg: Config{Now: func() time.Time { return tc.read }}}}
			js := &jobState{pausedAt: tc.pausing, resumeSeen: tc.heard}
			js.def.SpecRev, js.def.Control.Paused = 1, true
			st.noteResumed(js, &state.Control{At: tc.asked})
			require.Equal(t, tc.want, js.resumed)
		})
	}
}
