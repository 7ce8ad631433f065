package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a store on a real etcd, with a term that is held and a job that is defined.
type fixture struct {
	*Store
	t    *testing.T
	term Term
	def  Definition
	at   time.Time
}

const testJob = "billing"

func setup(t *testing.T) *fixture {
	t.Helper()
	client := etcdtest.Start(t).Client(t)
	keys, err := NewKeys("", "")
	require.NoError(t, err)
	f := &fixture{Store: NewStore(client, keys, StoreConfig{}), t: t, at: time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)}
	f.term = f.elect()
	f.def, err = f.Define(t.Context(), f.term, Definition{}, Spec{Name: testJob, UID: "u1", Schedule: "* * * * *"}, JobStatus{UID: "u1"})
	require.NoError(t, err)
	return f
}

// elect puts a new election key: an earlier term is over.
func (f *fixture) elect() Term {
	f.t.Helper()
	key := f.keys.Candidates() + "1"
	_, err := f.client.Delete(f.t.Context(), key)
	require.NoError(f.t, err)
	resp, err := f.client.Put(f.t.Context(), key, "{}")
	require.NoError(f.t, err)
	return Term{Key: key, Revision: resp.Header.Revision}
}

func (f *fixture) lease(ttl int64) clientv3.LeaseID {
	f.t.Helper()
	resp, err := f.client.Grant(f.t.Context(), ttl)
	require.NoError(f.t, err)
	return resp.ID
}

// running is the record of a run that begins i minutes after the first.
func (f *fixture) running(i int) Run {
	at := f.at.Add(time.Duration(i) * time.Minute)
	return Run{
		Job: testJob, ID: RunID(at), Trigger: BySchedule, ScheduledAt: at, Status: Running, Attempt: 1, StartedAt: at,
		Instance: "a", Term: f.term.Revision,
	}
}

func (f *fixture) claimOf(i int) Claim {
	return Claim{
		Term: f.term, Run: f.running(i), UID: "u1", View: f.def.View, SpecRev: f.def.SpecRev, ControlRev: f.def.ControlRev,
		Lease: f.lease(60),
	}
}

func (f *fixture) mustClaim(i int) (Owned, View) {
	f.t.Helper()
	owned, view, err := f.Claim(f.t.Context(), f.claimOf(i))
	require.NoError(f.t, err)
	return owned, view
}

func (f *fixture) get(key string) string {
	f.t.Helper()
	kv, err := f.getOne(f.t.Context(), key)
	require.NoError(f.t, err)
	if kv == nil {
		return ""
	}
	return string(kv.Value)
}

func (f *fixture) status() JobStatus {
	f.t.Helper()
	def, err := f.Job(f.t.Context(), testJob)
	require.NoError(f.t, err)
	require.NoError(f.t, def.Broken)
	return def.View.Status
}

func succeeded(r Run) Run {
	r.Status, r.FinishedAt, r.DurationMS = Succeeded, r.StartedAt.Add(time.Second), 1000
	return r
}

func TestClaimWritesLockRecordAndStatusTogether(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	require.JSONEq(t, `{"run":"20261130T010000Z","instance":"a"}`, f.get(f.keys.Lock(testJob)))
	run, rev, err := f.Run(t.Context(), testJob, "20261130T010000Z")
	require.NoError(t, err)
	require.Equal(t, owned.Revision, rev)
	require.Equal(t, owned.Revision, run.FencingToken, "the token of a running attempt is the revision of its claim")
	require.Equal(t, view.Status, f.status())
	require.Equal(t, []string{"20261130T010000Z"}, view.Status.Live)
	require.Equal(t, f.at, view.Status.Cursor)

	view, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	require.Empty(t, f.get(f.keys.Lock(testJob)))
	require.Equal(t, view.Status, f.status())
	require.Empty(t, view.Status.Live)
	require.Equal(t, int64(1), view.Status.SucceededTotal)
}

// Invariant I1, first half: whoever believes to lead, a scheduled time is claimed once.
func TestClaimOnce(t *testing.T) {
	f := setup(t)
	var won, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		c := f.claimOf(0)
		c.Run.Instance = fmt.Sprintf("instance-%d", i)
		wg.Go(func() {
			switch _, _, err := f.Claim(t.Context(), c); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, ErrRunExists):
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(1), won.Load())
	require.Equal(t, int64(49), refused.Load())
	require.Equal(t, 1, f.status().Running)
}

func TestClaimIsRefusedByEachOfItsCompares(t *testing.T) {
	put := func(f *fixture, key, value string) {
		_, err := f.client.Put(f.t.Context(), key, value)
		require.NoError(f.t, err)
	}
	for _, tc := range []struct {
		name    string
		before  func(f *fixture)
		refused error
	}{
		{"another term began", func(f *fixture) { f.elect() }, ErrNotLeading},
		{"the run has a record", func(f *fixture) { put(f, f.keys.Run(testJob, RunID(f.at)), "{}") }, ErrRunExists},
		{"the job was edited", func(f *fixture) { put(f, f.keys.Spec(testJob), "{}") }, ErrSpecChanged},
		{"the job was paused", func(f *fixture) { put(f, f.keys.Control(testJob), `{"paused":true}`) }, ErrControlChanged},
		{"the job is locked", func(f *fixture) { put(f, f.keys.Lock(testJob), "{}") }, ErrLocked},
		{"the status is another job's", func(f *fixture) { put(f, f.keys.Status(testJob), `{"uid":"u2"}`) }, ErrStatusReplaced},
		{"the status is broken", func(f *fixture) { put(f, f.keys.Status(testJob), "{") }, ErrStatusReplaced},
		{"the status was deleted", func(f *fixture) {
			_, err := f.client.Delete(f.t.Context(), f.keys.Status(testJob))
			require.NoError(f.t, err)
		}, ErrStatusReplaced},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := setup(t)
			tc.before(f)
			_, _, err := f.Claim(t.Context(), f.claimOf(0))
			require.ErrorIs(t, err, tc.refused)
			if !errors.Is(tc.refused, ErrRunExists) {
				require.Empty(t, f.get(f.keys.Run(testJob, RunID(f.at))))
			}
		})
	}
}

func TestFinishIsRefusedOnceTheRunWasTakenOver(t *testing.T) {
	f := setup(t)
	old, view := f.mustClaim(0)
	_, err := f.client.Delete(t.Context(), f.keys.Lock(testJob)) // its lease ended
	require.NoError(t, err)
	f.term = f.elect()

	next := old.Run
	next.Attempt, next.Recoveries, next.Instance = 2, 1, "b"
	taken, view, err := f.TakeOver(t.Context(), Succession{Term: f.term, Lost: old, Next: next, View: view, Lease: f.lease(60)})
	require.NoError(t, err)
	require.Greater(t, taken.Revision, old.Revision, "fencing tokens grow")
	require.Equal(t, int64(1), view.Status.RecoveredTotal)

	before := f.status()
	_, err = f.Finish(t.Context(), old, succeeded(old.Run), View{})
	require.ErrorIs(t, err, ErrNotOwner)
	require.Equal(t, before, f.status(), "not a word")
	require.JSONEq(t, `{"run":"20261130T010000Z","instance":"b"}`, f.get(f.keys.Lock(testJob)), "nor is the new owner's lock touched")

	_, err = f.Finish(t.Context(), taken, succeeded(taken.Run), view)
	require.NoError(t, err)
}

func TestTakeOverLeavesALockedRunAlone(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	next := owned.Run
	next.Attempt = 2
	_, _, err := f.TakeOver(t.Context(), Succession{Term: f.term, Lost: owned, Next: next, View: view, Lease: f.lease(60)})
	require.ErrorIs(t, err, ErrLocked)
	end := owned.Run
	end.Status = Failed
	_, err = f.Abandon(t.Context(), f.term, owned, end, view)
	require.ErrorIs(t, err, ErrLocked)
}

func TestFinishAfterTheLockWasLostTellsTheTruth(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	_, err := f.client.Delete(t.Context(), f.keys.Lock(testJob))
	require.NoError(t, err)
	_, err = f.client.Put(t.Context(), f.keys.Lock(testJob), `{"run":"another"}`)
	require.NoError(t, err)
	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	require.NotEmpty(t, f.get(f.keys.Lock(testJob)), "a lock that is not ours stays")
}

func TestFinishOfADeletedJobLeavesTheNewOneAlone(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	def, err := f.Job(t.Context(), testJob)
	require.NoError(t, err)
	_, err = f.Define(t.Context(), f.term, def, Spec{Name: testJob, UID: "u2"}, JobStatus{UID: "u2"})
	require.NoError(t, err)
	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	require.Equal(t, JobStatus{UID: "u2"}, f.status())
	run, _, err := f.Run(t.Context(), testJob, owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, Succeeded, run.Status)
}

func TestFinishWritesTheRecordAlsoWhenTheStatusIsBroken(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	_, err := f.client.Put(t.Context(), f.keys.Status(testJob), "{broken")
	require.NoError(t, err)
	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	run, _, err := f.Run(t.Context(), testJob, owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, Succeeded, run.Status)
	require.Equal(t, "{broken", f.get(f.keys.Status(testJob)), "left for whoever mends it")
}

func TestRecordCountsARangeOnce(t *testing.T) {
	f := setup(t)
	missed := Run{
		Job: testJob, ID: RunID(f.at), Trigger: ByCatchUp, ScheduledAt: f.at, Status: Missed, Reason: ReasonSuperseded,
		Count: 86_400, Until: f.at.Add(24 * time.Hour),
	}
	v := Verdict{Term: f.term, Run: missed, UID: "u1", View: f.def.View, SpecRev: f.def.SpecRev}
	_, err := f.Record(t.Context(), v)
	require.NoError(t, err)
	_, err = f.Record(t.Context(), v)
	require.NoError(t, err, "the same words again are the same record")
	require.Equal(t, int64(86_400), f.status().MissedTotal)
	require.Equal(t, f.at.Add(24*time.Hour), f.status().Cursor)
}

func TestStatusThatMovedIsAccountedAnew(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	skipped := Run{
		Job: testJob, ID: RunID(f.at.Add(time.Minute)), Trigger: BySchedule, ScheduledAt: f.at.Add(time.Minute),
		Status: Skipped, Reason: ReasonOverlap,
	}
	_, err := f.Record(t.Context(), Verdict{Term: f.term, Run: skipped, UID: "u1", View: view, SpecRev: f.def.SpecRev})
	require.NoError(t, err)
	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view) // knows the status before the skip
	require.NoError(t, err)
	st := f.status()
	require.Equal(t, int64(1), st.SkippedTotal)
	require.Equal(t, int64(1), st.SucceededTotal)
	require.Equal(t, f.at.Add(time.Minute), st.Cursor)
}

func TestIllegalStepsAreRefused(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	again := owned.Run
	again.Status = Skipped
	_, err := f.Finish(t.Context(), owned, again, view)
	require.ErrorContains(t, err, `cannot go from "running" to "skipped"`)
}

// faulty is a committer whose answers get lost.
type faulty struct {
	Committer
	before func(Mutation) error // instead of sending
	after  func(Mutation) error // instead of the answer
}

func (c faulty) Commit(ctx context.Context, m Mutation) (Result, error) {
	if c.before != nil {
		if err := c.before(m); err != nil {
			return Result{}, err
		}
	}
	res, err := c.Committer.Commit(ctx, m)
	if c.after != nil {
		if lost := c.after(m); lost != nil {
			return Result{}, lost
		}
	}
	return res, err
}

// first returns fault for the first n calls.
func first(n int, fault error) func(Mutation) error {
	var calls atomic.Int64
	return func(Mutation) error {
		if int(calls.Add(1)) <= n {
			return fault
		}
		return nil
	}
}

func TestUnknownOutcomeIsSettled(t *testing.T) {
	for name, fault := range map[string]faulty{
		"the answer was lost":  {after: first(1, context.DeadlineExceeded)},
		"the request was lost": {before: first(1, rpctypes.ErrTimeoutDueToLeaderFail)},
		"both, several times":  {before: first(2, rpctypes.ErrNoLeader), after: first(3, rpctypes.ErrTimeout)},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			fault.Committer = f.committer
			f.committer = fault
			owned, view, err := f.Claim(t.Context(), f.claimOf(0))
			require.NoError(t, err)
			run, rev, err := f.Run(t.Context(), testJob, owned.Run.ID)
			require.NoError(t, err)
			require.Equal(t, owned.Revision, rev)
			require.Equal(t, "a", run.Instance)
			require.Equal(t, view.Status, f.status())
			require.Equal(t, 1, view.Status.Running, "applied once")

			_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
			require.NoError(t, err)
			require.Equal(t, int64(1), f.status().SucceededTotal)
		})
	}
}

func TestUnknownOutcomeIsNotTakenForARefusal(t *testing.T) {
	// The first try times out and lands; the second is refused for want of space. That refusal says
	// nothing of the first try: the claim is ours.
	f := setup(t)
	calls := 0
	f.committer = faulty{
		Committer: f.committer,
		before: func(Mutation) error {
			if calls++; calls == 2 {
				return rpctypes.ErrNoSpace
			}
			return nil
		},
		after: first(1, context.DeadlineExceeded),
	}
	_, _, err := f.Claim(t.Context(), f.claimOf(0))
	require.NoError(t, err)
	require.Equal(t, 3, calls)
}

func TestDefiniteRefusalIsReturnedAtOnce(t *testing.T) {
	f := setup(t)
	f.committer = faulty{Committer: f.committer, before: first(1, rpctypes.ErrNoSpace)}
	_, _, err := f.Claim(t.Context(), f.claimOf(0))
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	require.Empty(t, f.get(f.keys.Run(testJob, RunID(f.at))))
}

func TestUnknownOutcomeEndsWithItsContextUnknown(t *testing.T) {
	f := setup(t)
	f.committer = faulty{Committer: f.committer, before: first(1000, rpctypes.ErrTimeout)}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := f.Claim(ctx, f.claimOf(0))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestClaimUnderALeaseThatIsGone(t *testing.T) {
	f := setup(t)
	c := f.claimOf(0)
	_, err := f.client.Revoke(t.Context(), c.Lease)
	require.NoError(t, err)
	_, _, err = f.Claim(t.Context(), c)
	require.ErrorIs(t, err, ErrLeaseLost)
	require.Empty(t, f.get(f.keys.Run(testJob, c.Run.ID)))
}

func TestJobsListsWhatIsBrokenToo(t *testing.T) {
	f := setup(t)
	_, err := f.client.Put(t.Context(), f.keys.Spec("bad"), "{")
	require.NoError(t, err)
	_, err = f.client.Put(t.Context(), f.keys.Status("bad"), `{"uid":"x"}`)
	require.NoError(t, err)
	jobs, err := f.Jobs(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	require.Equal(t, "bad", jobs[0].Spec.Name)
	require.ErrorIs(t, jobs[0].Broken, ErrBadRecord)
	require.NoError(t, jobs[1].Broken)

	_, err = f.Job(t.Context(), "nobody")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = f.Job(t.Context(), "a/b")
	require.ErrorIs(t, err, ErrBadName)
}

func TestJobsIsPaged(t *testing.T) {
	f := setup(t)
	const n = 2*pageSize + 7
	for i := range n {
		name := fmt.Sprintf("job-%04d", i)
		_, err := f.client.Txn(t.Context()).Then(
			clientv3.OpPut(f.keys.Spec(name), `{"name":"`+name+`","uid":"x"}`),
			clientv3.OpPut(f.keys.Status(name), `{"uid":"x"}`)).Commit()
		require.NoError(t, err)
	}
	jobs, err := f.Jobs(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, n+1)
	require.Equal(t, "job-1006", jobs[n].Spec.Name)
}

func TestStoredJSONIsWhatPeopleRead(t *testing.T) {
	f := setup(t)
	f.mustClaim(0)
	resp, err := f.client.Get(t.Context(), f.keys.Root(), clientv3.WithPrefix())
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(resp.Kvs), 5)
	for _, kv := range resp.Kvs {
		require.True(t, json.Valid(kv.Value), "%s: %s", kv.Key, kv.Value)
	}
}

// Jobs that follow each other are read in ranges, others key by key: it must not show.
func TestDefinitionsAreTheSameHoweverTheyAreRead(t *testing.T) {
	f := setup(t)
	const jobs, among = 130, 20
	name := func(i int) string { return fmt.Sprintf("j%04d", i) }
	var ops []clientv3.Op
	put := func(key, value string) { ops = append(ops, clientv3.OpPut(key, value)) }
	for i := range jobs * among {
		switch {
		case i%among == 0 && i%7 != 0:
			put(f.keys.Spec(name(i)), fmt.Sprintf(`{"name":%q,"uid":"u%d"}`, name(i), i))
			put(f.keys.Status(name(i)), fmt.Sprintf(`{"uid":"u%d"}`, i))
			if i%3 == 0 {
				put(f.keys.Control(name(i)), `{"paused":true}`)
			}
		case i >= jobs*among/2: // others lie among the second half
			put(f.keys.Status(name(i)), `{"uid":"other"}`)
		}
	}
	for chunk := range slices.Chunk(ops, maxTxnOps) {
		_, err := f.client.Txn(t.Context()).Then(chunk...).Commit()
		require.NoError(t, err)
	}
	var names []string
	for i := range jobs {
		names = append(names, name(i*among))
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	all, err := f.Definitions(t.Context(), names)
	require.NoError(t, err)
	require.Len(t, all, jobs)
	for _, job := range names {
		alone, err := f.Definitions(t.Context(), []string{job})
		require.NoError(t, err)
		require.Equal(t, alone[job], all[job], job)
	}
	sparse := map[string]Definition{}
	slices.Sort(names)
	dense, err := f.readNeighbors(t.Context(), names[jobs/2:], sparse)
	require.NoError(t, err)
	require.False(t, dense)
	require.Empty(t, sparse)
	dense, err = f.readNeighbors(t.Context(), names[:jobs/2], sparse)
	require.NoError(t, err)
	require.True(t, dense)
}

// What becomes of the scheduled times before a run is written with its claim, or nothing is.
func TestAClaimWritesWhatComesBeforeIt(t *testing.T) {
	f := setup(t)
	c := f.claimOf(2)
	missed := Run{Job: testJob, ID: RunID(f.at), Trigger: ByCatchUp, ScheduledAt: f.at, Status: Missed, Reason: ReasonSuperseded, Count: 2, Until: f.at.Add(time.Second)}
	c.Before = []Run{missed}
	owned, view, err := f.Claim(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, int64(2), view.Status.MissedTotal)
	require.Equal(t, c.Run.ID, view.Status.LastRunID)
	require.Equal(t, []string{c.Run.ID}, view.Status.Live)
	_, rev, err := f.Run(t.Context(), testJob, missed.ID)
	require.NoError(t, err)
	require.Equal(t, owned.Revision, rev, "in one write")

	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	f.def.View = View{Status: f.status(), Revision: f.revision(f.keys.Status(testJob))}
	c = f.claimOf(4)
	c.Before = []Run{missed}
	_, _, err = f.Claim(t.Context(), c)
	require.ErrorIs(t, err, ErrRunExists)
	require.Empty(t, f.get(f.keys.Run(testJob, c.Run.ID)))
	require.Equal(t, int64(2), f.status().MissedTotal)

	c.Before = []Run{{Job: testJob, ID: RunID(f.at.Add(3 * time.Second)), Status: Pending}}
	_, _, err = f.Claim(t.Context(), c)
	require.ErrorContains(t, err, "not over")
}

// What becomes of the scheduled times before a run was decided on what ran then.
func TestAClaimWithWhatComesBeforeItIsDecidedOnWhatRuns(t *testing.T) {
	f := setup(t)
	c := f.claimOf(0)
	c.Shared = true
	owned, view, err := f.Claim(t.Context(), c)
	require.NoError(t, err)
	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)

	c = f.claimOf(2)
	c.Shared, c.View = true, view
	c.Before = []Run{{Job: testJob, ID: RunID(f.at.Add(time.Minute)), Trigger: ByCatchUp, ScheduledAt: f.at.Add(time.Minute), Status: Missed}}
	_, _, err = f.Claim(t.Context(), c)
	require.ErrorIs(t, err, ErrStatusReplaced)
	c.Before = nil
	_, view, err = f.Claim(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{c.Run.ID}, view.Status.Live)
}
