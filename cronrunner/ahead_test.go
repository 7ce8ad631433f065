package cronrunner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

func TestTheLeadFollowsTheMeasuredPace(t *testing.T) {
	var p pace
	require.Zero(t, p.lead(fewJobs), "few need none")
	require.Equal(t, minLead+1000*slowClaim, p.lead(1000))
	require.Equal(t, maxLead, p.lead(1_000_000))
	p.measured(time.Second, fewJobs) // says nothing of a burst
	require.Equal(t, minLead+1000*slowClaim, p.lead(1000))
	p.measured(10*time.Millisecond, 100)
	require.Equal(t, minLead+100*time.Millisecond, p.lead(1000))
	for range 50 {
		p.measured(50*time.Millisecond, 100)
	}
	require.InDelta(t, minLead+500*time.Millisecond, p.lead(1000), float64(5*time.Millisecond))
}

func TestBurstsAreWhatIsDueTogether(t *testing.T) {
	table := newTimetable()
	for i, schedule := range []string{"* * * * *", "* * * * *", "*/2 * * * *", "30 * * * * *", "0 13 * * *"} {
		addJob(t, table, fmt.Sprint(i), schedule, noon)
	}
	jobs := func(from, upTo time.Duration) map[time.Duration]int {
		found := map[time.Duration]int{}
		for _, b := range table.bursts(noon.Add(from), noon.Add(upTo)) {
			found[b.at.Sub(noon)] += b.jobs
		}
		return found
	}
	require.Empty(t, jobs(0, 29*time.Second))
	require.Equal(t, map[time.Duration]int{30 * time.Second: 1, time.Minute: 2, 2 * time.Minute: 1}, jobs(0, 3*time.Minute))
	require.Equal(t, map[time.Duration]int{2 * time.Minute: 1, time.Hour: 1}, jobs(time.Minute, time.Hour), "not what is due already")
}

// burstOf is n jobs that are due at one instant, far enough away, and what they did.
type burstOf struct {
	jobs []Job
	at   time.Time

	mu      sync.Mutex
	started map[string][]time.Time
}

func newBurst(n int, in time.Duration) *burstOf {
	b := &burstOf{at: time.Now().UTC().Truncate(time.Second).Add(in), started: map[string][]time.Time{}}
	for i := range n {
		b.jobs = append(b.jobs, Job{
			Name: fmt.Sprintf("job%d", i), Schedule: "@at " + b.at.Format(time.RFC3339), LockTTL: 3 * time.Second,
			Handler: func(_ context.Context, run *Run) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.started[run.Job()] = append(b.started[run.Job()], time.Now())
				return nil
			},
		})
	}
	return b
}

func (b *burstOf) starts(job string) []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started[job]
}

// waitClaimed waits until the run of a job is claimed, and checks that it is before it is due.
func (b *bench) waitClaimed(burst *burstOf, job string) state.Run {
	b.t.Helper()
	for _, j := range burst.jobs {
		require.Eventually(b.t, func() bool { return b.defined(j.Name) || time.Now().After(burst.at) }, patience, 5*time.Millisecond)
	}
	if time.Now().After(burst.at.Add(-maxLead)) {
		b.t.Skip("the machine is too slow: not all are loaded before they are claimed")
	}
	r := b.waitRun(job, state.RunID(burst.at), func(state.Run) bool { return true })
	if time.Now().After(burst.at) {
		b.t.Skip("the machine is too slow to see it")
	}
	require.Equal(b.t, state.Running, r.Status)
	require.Equal(b.t, burst.at, r.StartedAt, "it says when it will start")
	return r
}

// slowPace has bursts claimed as early as may be.
func slowPace(s *Scheduler) { s.pace.perClaim.Store(int64(time.Second)) }

func TestABurstIsClaimedAheadAndStartsOnTime(t *testing.T) {
	b := newBench(t)
	burst := newBurst(50, 8*time.Second)
	i := b.start(Config{}, burst.jobs...)
	slowPace(i.Scheduler)
	b.waitClaimed(burst, "job0")
	require.Empty(t, burst.starts("job0"))
	skipped := b.acted(b.submit(state.Request{Kind: state.AskTrigger, Job: "job0"}))
	for n := range 50 {
		r := b.waitOver(fmt.Sprintf("job%d", n), state.RunID(burst.at))
		require.Equal(t, state.Succeeded, r.Status)
		require.Equal(t, 1, r.Attempt)
		require.False(t, r.StartedAt.Before(burst.at), "not before its time")
		require.Len(t, burst.starts(r.Job), 1)
	}
	i.stop()
	require.Equal(t, state.ReasonOverlap, skipped.Reason, "a run that is claimed has the job")
}

func TestAPauseStopsWhatWasClaimedAhead(t *testing.T) {
	b := newBench(t)
	burst := newBurst(50, 8*time.Second)
	i := b.start(Config{}, burst.jobs...)
	slowPace(i.Scheduler)
	b.waitClaimed(burst, "job7")
	_, err := b.store.Pause(t.Context(), "job7", "ann", "")
	require.NoError(t, err)
	if time.Now().After(burst.at.Add(-200 * time.Millisecond)) {
		t.Skip("the machine is too slow to see it")
	}
	r := b.waitOver("job7", state.RunID(burst.at))
	require.Equal(t, state.Canceled, r.Status)
	require.Equal(t, state.ReasonPaused, r.Reason)
	b.waitOver("job8", state.RunID(burst.at))
	i.stop()
	require.Empty(t, burst.starts("job7"))
	require.Zero(t, i.attempts.slots)
	require.Len(t, burst.starts("job8"), 1)
	b.requireNothingLeft("job7")
}

// The loop hears of a pause before it has the answer to a claim that was made ahead of it.
func TestAPauseStopsAClaimAheadThatIsAnsweredLater(t *testing.T) {
	st := newStill(t)
	j := mustCompile(t, secondly("tick", quick))
	spec := specOf(j)
	spec.UID = "u"
	def, err := st.s.store.Define(t.Context(), st.held, state.Definition{}, spec, state.JobStatus{UID: "u"})
	require.NoError(t, err)
	js := &jobState{name: "tick", job: j, def: def}
	st.jobs["tick"] = js
	at := time.Now().UTC().Truncate(time.Second).Add(time.Minute) // it begins maxLead after the claim
	require.True(t, st.s.attempts.reserve())
	apply := st.claim(j, def, []verdict{{status: state.Running, trigger: state.BySchedule, first: at, last: at, count: 1}}, at)
	js.pausedSeen = true
	require.NoError(t, apply(st.term))
	r := st.waitOver("tick", state.RunID(at))
	require.Equal(t, state.Canceled, r.Status)
	require.Equal(t, state.ReasonPaused, r.Reason)
}

// A lock that nothing explains and that a claim ahead has found says nothing of the time when the job is due.
func TestALockThatAClaimAheadHasFoundMayBeGoneWhenItIsDue(t *testing.T) {
	st := newStill(t)
	j := mustCompile(t, secondly("tick", quick))
	spec := specOf(j)
	spec.UID = "u"
	at := time.Now().UTC().Truncate(time.Second).Add(time.Minute)
	def, err := st.s.store.Define(t.Context(), st.held, state.Definition{}, spec, state.JobStatus{UID: "u", Cursor: at.Add(-time.Second)})
	require.NoError(t, err)
	js := &jobState{name: "tick", job: j, def: def, ahead: at}
	st.jobs["tick"] = js
	unlock := st.lockByHand("tick")
	require.True(t, st.s.attempts.reserve())
	require.NoError(t, st.nextBurst(js, at.Add(-time.Second)).op()(st.term))
	unlock()
	require.True(t, st.nextTask(js, at).claims)
}

// A change of leader, or a shutdown, between the claim and its second changes nothing: the run has its lock and
// its owner.
func TestAChangeOfLeaderAfterAClaimAhead(t *testing.T) {
	b := newBench(t)
	burst := newBurst(50, 10*time.Second)
	a := b.start(Config{InstanceID: "a"}, burst.jobs...)
	d := b.start(Config{InstanceID: "d"}, burst.jobs...)
	b.waitCandidates(2)
	slowPace(a.Scheduler)
	slowPace(d.Scheduler)
	b.waitClaimed(burst, "job0")
	first := a
	if d.leads() {
		first = d
	}
	first.stop() // hands over at once, and drains what it has claimed
	a.stop()
	d.stop()
	for n := range 50 {
		name := fmt.Sprintf("job%d", n)
		r := b.waitOver(name, state.RunID(burst.at))
		require.Equal(t, state.Succeeded, r.Status, "%s: %s", name, r.Error)
		require.Equal(t, 1, r.Attempt)
		require.Len(t, burst.starts(name), 1)
		b.requireNothingLeft(name)
	}
}

// The clock is set back by an hour after the claim: the run does not wait for an hour with the job locked.
func TestAClockThatIsSetBackAfterAClaimAhead(t *testing.T) {
	b := newBench(t)
	burst := newBurst(50, 8*time.Second)
	var back atomic.Int64
	i := b.start(Config{Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }}, burst.jobs...)
	slowPace(i.Scheduler)
	b.waitClaimed(burst, "job0")
	back.Store(int64(time.Hour))
	require.Equal(t, state.Succeeded, b.waitOver("job0", state.RunID(burst.at)).Status)
	i.stop()
	require.Len(t, burst.starts("job0"), 1)
}

// The ends of a burst's first runs wait for the beginnings of its last, but not for long.
func TestWhatIsDueTogetherBeginsBeforeTheEndsOfItsFirstAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as := newAttempts(&Scheduler{cfg: Config{Now: time.Now}}, nil)
		depart := func(at time.Time) *execution {
			x := &execution{departure: as.departing(at)}
			x.ctx, x.cancel = context.WithCancelCause(t.Context())
			return x
		}
		at := time.Now().Add(time.Second)
		first, last, canceled := depart(at), depart(at), depart(at)
		var written time.Time
		ending := make(chan struct{})
		go func() {
			defer close(ending)
			as.awaitStart(first, at)
			as.letOthersBegin(first)
			written = time.Now()
		}()
		canceled.cancel(errPaused)
		as.awaitStart(canceled, at)
		as.letOthersBegin(canceled)
		require.True(t, time.Now().Before(at), "a run that is canceled does not wait")

		time.Sleep(time.Second + maxDeparture/2)
		synctest.Wait()
		require.Zero(t, written)
		as.awaitStart(last, at)
		<-ending
		require.Equal(t, at.Add(maxDeparture/2), written)
		require.Empty(t, as.departures)

		slow := at.Add(time.Second)
		first, last = depart(slow), depart(slow)
		as.awaitStart(first, slow)
		as.letOthersBegin(first)
		require.Equal(t, slow.Add(maxDeparture), time.Now(), "one that does not get to begin does not keep the others")
		as.awaitStart(last, slow)
		as.letOthersBegin(last)
		require.Empty(t, as.departures)
	})
}

// A job that is busy when its burst is looked at is claimed ahead all the same when its run ends in time.
func TestABusyJobIsClaimedAheadWhenItsRunEnds(t *testing.T) {
	j := mustCompile(t, Job{Name: "busy", Schedule: "* * * * * *"})
	at := noon.Add(time.Second)
	tm := &term{s: &Scheduler{}, since: noon.Add(-time.Hour), asks: map[string]*asks{}}
	js := &jobState{name: "busy", job: j, ahead: at}
	js.def.View.Status = state.JobStatus{Cursor: noon, Live: []string{state.RunID(noon)}}
	require.Nil(t, tm.nextBurst(js, noon.Add(300*time.Millisecond)).op)
	js.def.View.Status.Live = nil
	require.NotNil(t, tm.nextBurst(js, noon.Add(600*time.Millisecond)).op)
	require.Nil(t, tm.nextBurst(js, noon.Add(700*time.Millisecond)).op, "once")
	js.ahead, js.def.View.Status.Live = at, []string{state.RunID(noon)}
	require.Nil(t, tm.nextBurst(js, at).op)
	require.Zero(t, js.ahead, "what is due is decided on time")
}
