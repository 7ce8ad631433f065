package cronrunner

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// still is a term without a loop: a test applies the effects of its operations itself, in the order that
// it wants to try.
type still struct {
	*bench
	*term
}

func newStill(t *testing.T) *still {
	t.Helper()
	b := newBench(t)
	s, err := New(b.cluster.Client(t), Config{})
	require.NoError(t, err)
	leases := state.NewLeases(s.store, state.NewLessor(s.client))
	s.attempts = newAttempts(s, leases)
	key := s.store.Keys().Candidates() + "1"
	resp, err := b.client.Put(t.Context(), key, "{}")
	require.NoError(t, err)
	tm := &term{
		s: s, held: state.Term{Key: key, Revision: resp.Header.Revision}, beat: func() {}, log: s.log, since: time.Now(),
		jobs: make(map[string]*jobState), table: newTimetable(), retries: make(map[*jobState]struct{}),
		done: make(chan effect, 64), over: make(chan struct{}), ops: make(map[int]time.Time),
		asks: make(map[string]*asks), standing: make(map[string]state.Standing),
		herald: newHerald(t.Context()),
	}
	t.Cleanup(func() {
		close(tm.over)
		tm.stopWatchingLocks()
		s.attempts.drain(0)
		leases.Close()
	})
	return &still{bench: b, term: tm}
}

// running defines a job and claims a run of it, which nobody executes.
func (st *still) running(name, instance string) (*jobState, state.Owned) {
	t := st.t
	t.Helper()
	j := mustCompile(t, secondly(name, quick))
	spec := specOf(j)
	spec.UID = "u"
	def, err := st.s.store.Define(t.Context(), st.held, state.Definition{}, spec, state.JobStatus{UID: "u"})
	require.NoError(t, err)
	lease, err := st.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	at := time.Now().UTC().Truncate(time.Second)
	owned, view, err := st.s.store.Claim(t.Context(), state.Claim{
		Term: st.held, UID: "u", View: def.View, SpecRev: def.SpecRev, Lease: lease.ID,
		Run: state.Run{
			Job: name, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Running, Attempt: 1,
			StartedAt: at, Instance: instance,
		},
	})
	require.NoError(t, err)
	def.View = view
	js := &jobState{name: name, job: j, def: def}
	st.jobs[name] = js
	return js, owned
}

func (st *still) deleteKey(key string) {
	st.t.Helper()
	_, err := st.client.Delete(st.t.Context(), key)
	require.NoError(st.t, err)
}

// A lock that goes while a recovery is reading is seen by the watch alone; what the recovery read must
// not wipe that out.
func TestALockThatGoesDuringARecoveryIsNotForgotten(t *testing.T) {
	st := newStill(t)
	other, _ := st.running("other", "elsewhere")
	victim, _ := st.running("victim", "elsewhere")
	st.setForeign(other, []string{st.s.store.Keys().Lock("other")})
	require.NoError(t, (<-st.done)(st.term)) // the watch's list
	victim.working, victim.recovering, victim.recover = true, true, false
	read := st.recoverJob("victim", victim.job, nil, false)
	st.deleteKey(st.s.store.Keys().Lock("victim"))
	require.NoError(t, (<-st.done)(st.term)) // the watch's event comes first
	require.NoError(t, read(st.term))
	require.True(t, victim.recover)
}

func TestARunInterruptedDuringARecoveryIsNotForgotten(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("victim", st.s.ID())
	st.s.attempts.running["victim/"+owned.Run.ID] = &execution{returned: make(chan struct{})}
	js.working, js.recover = true, false
	read := st.recoverJob("victim", js.job, nil, false)
	delete(st.s.attempts.running, "victim/"+owned.Run.ID)
	st.attemptEnded(ended{job: "victim", interrupted: true})
	require.NoError(t, read(st.term))
	require.True(t, js.recover)
}

// A claim's earlier try can land after a later one was refused: then there is a lock of ours, on a lease
// that lives, under which nothing runs.
func TestAnOwnLockUnderWhichNothingRunsIsCleared(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("orphan", st.s.ID())
	settled := st.s.attempts.claim("orphan")
	require.NoError(t, st.recoverJob("orphan", js.job, nil, false)(st.term))
	lock, err := st.s.store.LockOf(t.Context(), "orphan", "x")
	require.NoError(t, err)
	require.NotNil(t, lock, "not while its claim may still be settled")
	settled()

	require.NoError(t, st.recoverJob("orphan", js.job, nil, false)(st.term))
	require.True(t, js.recover, "it is looked at again")
	require.NoError(t, st.recoverJob("orphan", js.job, nil, false)(st.term))
	run := st.waitRuns("orphan", reached(1, state.Succeeded))[0]
	require.Equal(t, owned.Run.ID, run.ID)
	require.Equal(t, 2, run.Attempt)
}

func TestARunRecordThatIsBrokenIsOwedAnEnd(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("bad", "gone")
	keys := st.s.store.Keys()
	st.deleteKey(keys.Lock("bad"))
	_, err := st.client.Put(t.Context(), keys.Run("bad", owned.Run.ID), "{broken")
	require.NoError(t, err)
	require.NoError(t, st.recoverJob("bad", js.job, nil, false)(st.term))
	run, _, err := st.s.store.Run(t.Context(), "bad", owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, state.Failed, run.Status)
	require.Empty(t, st.status("bad").Live)
}

func TestASpecDeletedUnderALiveRunIsReadAgain(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("x", "gone")
	keys := st.s.store.Keys()
	st.deleteKey(keys.Lock("x"))
	st.deleteKey(keys.Spec("x"))
	require.NoError(t, st.recoverJob("x", js.job, nil, false)(st.term))
	require.True(t, js.reload && js.recover)
	resp, err := st.client.Get(t.Context(), keys.Root()+"jobs//", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
}

func TestARecoveryWaitsForASlot(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("x", "gone")
	st.deleteKey(st.s.store.Keys().Lock("x"))
	st.s.cfg.MaxConcurrent = 1
	require.True(t, st.s.attempts.reserve())
	require.NoError(t, st.recoverJob("x", js.job, nil, false)(st.term))
	require.True(t, js.recover)
	run, _, err := st.s.store.Run(t.Context(), "x", owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, 1, run.Attempt)
	st.s.attempts.release()
	require.NoError(t, st.recoverJob("x", js.job, nil, false)(st.term))
	st.waitRuns("x", reached(1, state.Succeeded))
}

// A claim that is confirmed while the instance drains is a run like any other: it may take until the
// limit, and its end is recorded.
func TestAClaimConfirmedDuringTheDrain(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("late", st.s.ID())
	started := make(chan struct{})
	js.job.Handler = func(ctx context.Context, _ *Run) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}
	as := st.s.attempts
	grant, err := as.leases.For(3*time.Second).Acquire(t.Context(), time.Second)
	require.NoError(t, err)
	confirmed := make(chan struct{})
	as.work.Go(func() {
		<-confirmed
		as.reserve()
		as.start(attempt{job: js.job, owned: owned, view: js.def.View, grant: grant})
	})
	drained := make(chan struct{})
	go func() { as.drain(2 * time.Second); close(drained) }()
	close(confirmed)
	<-started
	<-drained
	run, _, err := st.s.store.Run(t.Context(), "late", owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, state.Canceled, run.Status)
	require.Equal(t, state.ReasonDrain, run.Reason)
}

// lockByHand locks a job as a run does that its status does not know.
func (b *bench) lockByHand(job string) (unlock func()) {
	b.t.Helper()
	key := b.store.Keys().Lock(job)
	_, err := b.client.Put(b.t.Context(), key, `{"run":"of a job of that name that was deleted","instance":"x"}`)
	require.NoError(b.t, err)
	return func() {
		_, err := b.client.Delete(b.t.Context(), key)
		require.NoError(b.t, err)
	}
}

// A lock that no run of the job explains holds its times off, and each is on record.
func TestALockThatNoRunExplains(t *testing.T) {
	b := newBench(t)
	i := b.start(Config{}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	unlock := b.lockByHand("tick")
	b.waitRuns("tick", reached(2, state.Skipped))
	unlock()
	n := count(b.runs("tick"), state.Succeeded)
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	i.stop()
	b.requireEachTimeOnce("tick")
}

// A status that was set back by hand does not run anything twice: the records say what was decided.
func TestACursorSetBackRepeatsNothing(t *testing.T) {
	b := newBench(t)
	var twice atomic.Int64
	var last atomic.Int64
	i := b.start(Config{}, secondly("tick", func(_ context.Context, run *Run) error {
		if at := run.ScheduledAt().Unix(); at <= last.Swap(at) {
			twice.Add(1)
		}
		return nil
	}))
	b.waitRuns("tick", reached(3, state.Succeeded))
	i.stop()
	b.requireEachTimeOnce("tick")

	b.putStatus("tick", func(st *state.JobStatus) { st.Cursor = st.Cursor.Add(-2 * time.Second) })
	n := count(b.runs("tick"), state.Succeeded)
	second := b.start(Config{}, secondly("tick", func(_ context.Context, run *Run) error {
		if at := run.ScheduledAt().Unix(); at <= last.Swap(at) {
			twice.Add(1)
		}
		return nil
	}))
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	second.stop()
	require.Zero(t, twice.Load())
}

// silentKV answers no transaction once it was silenced; reads and leases go on.
type silentKV struct {
	clientv3.KV
	silent atomic.Bool
}

func (kv *silentKV) Txn(ctx context.Context) clientv3.Txn {
	txn := kv.KV.Txn(ctx)
	if kv.silent.Load() {
		return &silentTxn{Txn: txn, ctx: ctx}
	}
	return txn
}

type silentTxn struct {
	clientv3.Txn
	ctx context.Context
}

func (t *silentTxn) If(...clientv3.Cmp) clientv3.Txn  { return t }
func (t *silentTxn) Then(...clientv3.Op) clientv3.Txn { return t }
func (t *silentTxn) Else(...clientv3.Op) clientv3.Txn { return t }

func (t *silentTxn) Commit() (*clientv3.TxnResponse, error) {
	<-t.ctx.Done()
	return nil, t.ctx.Err()
}

// Proof of progress: a leader whose writes are not answered gives way, though its lease is renewed.
func TestALeaderWhoseWritesAreNotAnsweredGivesWay(t *testing.T) {
	b := newBench(t)
	client := b.cluster.Client(t)
	kv := &silentKV{KV: client.KV}
	client.KV = kv
	mute := b.startOn(client, Config{InstanceID: "mute"}, secondly("tick", quick))
	b.waitRuns("tick", reached(1, state.Succeeded))
	other := b.start(Config{InstanceID: "other"}, secondly("tick", quick))
	b.waitCandidates(2)
	kv.silent.Store(true)
	other.waitLeading()
	n := count(b.runs("tick"), state.Succeeded)
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	kv.silent.Store(false)
	mute.stop()
	other.stop()
	b.requireEachTimeOnce("tick")
}

// A status that was put back by hand says that a run goes on that has ended, and that one waits that does
// not. The records are right, and the job goes on.
func TestAStatusThatContradictsItsRecordsIsPutRight(t *testing.T) {
	b := newBench(t)
	job := secondly("tick", quick)
	job.Overlap.Policy = Queue
	first := b.start(Config{}, job)
	b.waitRuns("tick", reached(3, state.Succeeded))
	first.stop()
	runs := b.runs("tick")
	b.putStatus("tick", func(st *state.JobStatus) {
		st.Live, st.Running = []string{runs[0].ID}, 1
		st.Queue, st.Pending = []string{runs[1].ID}, 1
		st.SucceededTotal-- // as it was before the first of them had ended
	})

	second := b.start(Config{}, job)
	n := count(runs, state.Succeeded)
	b.waitRuns("tick", reached(n+2, state.Succeeded))
	second.stop()
	b.requireEachTimeOnce("tick")
}

// A lock that no run explains does not keep a job with a queue from deciding.
func TestALockThatNoRunExplainsAndAQueue(t *testing.T) {
	b := newBench(t)
	job := secondly("tick", quick)
	job.Overlap.Policy = Queue
	i := b.start(Config{}, job)
	b.waitRuns("tick", reached(1, state.Succeeded))
	unlock := b.lockByHand("tick")
	b.waitRuns("tick", reached(3, state.Pending))
	unlock()
	b.waitRuns("tick", func(runs []state.Run) bool {
		return count(runs, state.Succeeded) >= 5 && count(runs, state.Pending) <= 1
	})
	i.stop()
}

// A late operation of the same term has decided a time already: what is decided on an older status is
// refused, also where no record of that time stands in the way.
func TestADecisionOnAnOlderCursorIsRefused(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("x", st.s.ID())
	js.job.Overlap.Policy = Coalesce
	before := js.def
	at := before.View.Status.Cursor
	wait := verdict{status: state.Pending, trigger: state.BySchedule, first: at.Add(time.Second), last: at.Add(time.Second), count: 1}
	require.NoError(t, st.recordVerdict(js.job, before, wait)(st.term))
	queued := js.def
	more := wait
	more.first, more.last, more.merge = at.Add(2*time.Second), at.Add(2*time.Second), true
	require.NoError(t, st.merge(js.job, queued, more)(st.term))
	merged := js.def.View

	missed := more
	missed.status, missed.reason, missed.merge = state.Missed, state.ReasonCatchUp, false
	require.NoError(t, st.recordVerdict(js.job, queued, missed)(st.term))
	require.True(t, js.reload)
	require.NoError(t, st.merge(js.job, queued, more)(st.term))
	require.Equal(t, merged.Status, st.status("x"))
	run, _, err := st.s.store.Run(t.Context(), "x", state.RunID(wait.first))
	require.NoError(t, err)
	require.Equal(t, int64(2), run.Times())
}

// Each lost run is given its own grace: that another's is over says nothing of it.
func TestTheGraceOfALostRunIsItsOwn(t *testing.T) {
	st := newStill(t)
	js, first := st.running("x", "a")
	js.job.Overlap = Overlap{Policy: Allow, Limit: 10}
	lease, err := st.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	at := first.Run.ScheduledAt.Add(time.Second)
	second, view, err := st.s.store.Claim(t.Context(), state.Claim{
		Term: st.held, UID: "u", View: js.def.View, SpecRev: js.def.SpecRev, Lease: lease.ID, Shared: true,
		Run: state.Run{Job: "x", ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Running, Attempt: 1, StartedAt: at, Instance: "c"},
	})
	require.NoError(t, err)
	js.def.View = view
	for _, id := range []string{"a", "c"} {
		require.NoError(t, st.s.store.Announce(t.Context(), state.Instance{ID: id}, lease.ID))
	}
	st.deleteKey(st.s.store.Keys().Lock("x"))
	require.NoError(t, st.recoverJob("x", js.job, js.lostAt, false)(st.term))
	require.Contains(t, js.lostAt, first.Run.ID)
	js.lostAt[first.Run.ID] = time.Now().Add(-stopTime(js.job))
	st.deleteKey(st.s.store.Keys().SharedLock("x", second.Run.ID)) // now the other's lock goes
	require.NoError(t, st.recoverJob("x", js.job, js.lostAt, false)(st.term))
	r, _, err := st.s.store.Run(t.Context(), "x", second.Run.ID)
	require.NoError(t, err)
	require.Equal(t, 1, r.Attempt, "its handler was told to stop just now, and its instance lives")
	require.Contains(t, js.lostAt, second.Run.ID)
	require.NotContains(t, js.lostAt, first.Run.ID)
}

// A job that allows several runs now may still be locked by one from before: that says nothing of the others.
func TestALockFromBeforeOthersWereAllowed(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("x", "gone")
	js.job.Overlap = Overlap{Policy: Allow, Limit: 10}
	st.deleteKey(st.s.store.Keys().Lock("x"))
	_, err := st.client.Put(t.Context(), st.s.store.Keys().Lock("x"), `{"run":"20200101T000000Z","instance":"elsewhere"}`)
	require.NoError(t, err)
	require.NoError(t, st.recoverJob("x", js.job, nil, false)(st.term))
	run, _, err := st.s.store.Run(t.Context(), "x", owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, 2, run.Attempt)
}

func TestARunThatIsCanceledBetweenTwoAttemptsWaitsForNothing(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("victim", "gone")
	next := owned.Run
	next.Retries, next.RetryAt, next.FencingToken = 1, time.Now().Add(time.Hour).UTC(), owned.Revision
	_, _, err := st.s.store.Retry(t.Context(), owned, next, js.def.View)
	require.NoError(t, err)
	st.deleteKey(st.s.store.Keys().Lock("victim"))
	st.s.attempts.cancels["victim/"+owned.Run.ID] = state.Request{By: "ann"}
	require.NoError(t, st.recoverJob("victim", js.job, nil, false)(st.term))
	r := st.waitRuns("victim", reached(1, state.Canceled))[0]
	require.Zero(t, r.RetryAt)
	require.Contains(t, r.Error, "was lost after attempt 1; canceled by ann")
	require.Equal(t, owned.Revision, r.FencingToken, "that of its last attempt, not of the write after it")
}
