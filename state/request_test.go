package state

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (f *fixture) mustSubmit(r Request) Request {
	f.t.Helper()
	r.Job = orTestJob(r.Job)
	r, err := f.Submit(f.t.Context(), r)
	require.NoError(f.t, err)
	return r
}

func orTestJob(name string) string {
	if name == "" {
		return testJob
	}
	return name
}

func (f *fixture) standing(r Request) Standing {
	f.t.Helper()
	all, err := f.Requests(f.t.Context())
	require.NoError(f.t, err)
	for _, s := range all {
		if s.ID == r.ID && s.Run == r.Run {
			return s
		}
	}
	require.Fail(f.t, "the request is not there", "%+v", r)
	return Standing{}
}

func TestARequestIsActedOnOnce(t *testing.T) {
	f := setup(t)
	r := f.mustSubmit(Request{Kind: AskTrigger, By: "ann", Args: map[string]string{"day": "2026-11-29"}})
	require.Regexp(t, `^\d{8}T\d{6}Z-m[a-z0-9]{8}$`, r.ID)
	claim := f.claimOf(0)
	claim.Run.ID, claim.Run.Trigger = r.ID, ByHand
	claim.Acted = &Acted{Standing: f.standing(r)}
	_, view, err := f.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Empty(t, view.Status.Cursor, "it takes no scheduled time")
	require.Zero(t, view.Status.ScheduledRunsTotal)
	left, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)

	again := f.claimOf(1)
	again.Acted, again.View = claim.Acted, view
	_, _, err = f.Claim(t.Context(), again)
	require.ErrorIs(t, err, ErrRequestGone)
	_, err = f.Record(t.Context(), Verdict{
		Term: f.term, Run: Run{Job: testJob, ID: "x", Status: Skipped, Trigger: ByHand}, UID: "u1", View: view, SpecRev: f.def.SpecRev, Acted: claim.Acted,
	})
	require.ErrorIs(t, err, ErrRequestGone)
	_, err = f.Drop(t.Context(), f.term, *claim.Acted)
	require.ErrorIs(t, err, ErrRequestGone)
}

func TestWhatIsLeftOfABackfillStands(t *testing.T) {
	f := setup(t)
	r := f.mustSubmit(Request{Kind: AskBackfill, From: f.at, To: f.at.Add(time.Minute), Total: 2})
	rest := r
	rest.Next, rest.Done = f.at.Add(time.Minute), 1
	claim := f.claimOf(0)
	claim.Run.Trigger = ByBackfill
	claim.Acted = &Acted{Standing: f.standing(r), Rest: &rest}
	owned, _, err := f.Claim(t.Context(), claim)
	require.NoError(t, err)
	s := f.standing(r)
	require.Equal(t, int64(1), s.Done)
	require.Equal(t, owned.Revision, s.Revision)
	_, err = f.Drop(t.Context(), f.elect(), Acted{Standing: s})
	require.NoError(t, err)
	_, err = f.Drop(t.Context(), f.term, Acted{Standing: s})
	require.ErrorIs(t, err, ErrNotLeading)
}

func TestWhateverEndsARunSettlesTheRequestToCancelIt(t *testing.T) {
	f := setup(t)
	cancel := func(run Run) string {
		f.mustSubmit(Request{Kind: AskCancel, Run: run.ID})
		f.mustSubmit(Request{Kind: AskCancel, Run: run.ID, Reason: "a second one is as good"})
		return f.keys.Cancel(testJob, run.ID)
	}
	owned, view := f.mustClaim(0)
	key := cancel(owned.Run)
	require.NotEmpty(t, f.get(key))
	owned.Canceled = true // the owner has heard of it
	_, err := f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	require.Empty(t, f.get(key))

	f.def.View = View{Status: f.status(), Revision: f.revision(f.keys.Status(testJob))}
	owned, view = f.mustClaim(1)
	key = cancel(owned.Run)
	require.NoError(t, f.Unlock(t.Context(), owned))
	end := owned.Run
	end.Status = Canceled
	_, err = f.Abandon(t.Context(), f.term, owned, end, view)
	require.NoError(t, err)
	require.Empty(t, f.get(key))
	require.Equal(t, int64(1), f.status().CanceledTotal)
}

func (f *fixture) revision(key string) int64 {
	f.t.Helper()
	kv, err := f.getOne(f.t.Context(), key)
	require.NoError(f.t, err)
	return kv.ModRevision
}

func TestARequestThatMakesNoSenseIsRefused(t *testing.T) {
	f := setup(t)
	owned, view := f.mustClaim(0)
	running := owned.Run.ID
	for _, tc := range []struct {
		r    Request
		want error
	}{
		{Request{Kind: "dance"}, ErrBadRequest},
		{Request{Kind: AskCancel}, ErrBadRequest},
		{Request{Kind: AskRetry}, ErrBadRequest},
		{Request{Kind: AskBackfill}, ErrBadRequest},
		{Request{Kind: AskBackfill, From: f.at, To: f.at.Add(-time.Second)}, ErrBadRequest},
		{Request{Kind: AskTrigger, Args: map[string]string{"a": strings.Repeat("x", MaxArgs)}}, ErrBadRequest},
		{Request{Kind: AskTrigger, Args: map[string]string{"no-name": ""}}, ErrBadRequest},
		{Request{Kind: AskTrigger, Job: "nobody"}, ErrNotFound},
		{Request{Kind: AskTrigger, Job: "no/name"}, ErrBadName},
		{Request{Kind: AskCancel, Run: "20200101T000000Z"}, ErrNotFound},
		{Request{Kind: AskRetry, Run: "20200101T000000Z"}, ErrNotFound},
		{Request{Kind: AskRetry, Run: running}, ErrRunNotOver},
	} {
		tc.r.Job = orTestJob(tc.r.Job)
		_, err := f.Submit(t.Context(), tc.r)
		require.ErrorIs(t, err, tc.want, "%+v", tc.r)
	}
	_, err := f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	_, err = f.Submit(t.Context(), Request{Kind: AskCancel, Job: testJob, Run: running})
	require.ErrorIs(t, err, ErrRunOver)
	r := f.mustSubmit(Request{Kind: AskRetry, Run: running})
	require.Equal(t, owned.Run.ScheduledAt, r.ScheduledAt, "it works on the same scheduled time")

	_, err = f.Pause(t.Context(), testJob, "ann", "why not")
	require.NoError(t, err)
	_, err = f.Submit(t.Context(), Request{Kind: AskTrigger, Job: testJob})
	require.ErrorIs(t, err, ErrPaused)
	left, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1, "what is refused writes nothing")
	withdrawn, err := f.Withdraw(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, r, withdrawn.Request)
	_, err = f.Withdraw(t.Context(), r.ID)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestRequestsMadeAtOnceAllStand(t *testing.T) {
	f := setup(t)
	const n = 200
	var wg sync.WaitGroup
	ids, errs := make(chan string, n), make(chan error, n)
	for range n {
		wg.Go(func() {
			r, err := f.Submit(t.Context(), Request{Kind: AskTrigger, Job: testJob})
			ids <- r.ID
			errs <- err
		})
	}
	wg.Wait()
	close(ids)
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	require.Len(t, seen, n)
	left, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, left, n)
}

func TestPauseAndResume(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	_, err := f.Pause(ctx, "nobody", "", "")
	require.ErrorIs(t, err, ErrNotFound)
	c, err := f.Resume(ctx, testJob, "ann", "")
	require.NoError(t, err)
	require.False(t, c.Paused)

	claim := f.claimOf(0)
	require.Zero(t, claim.ControlRev, "there was nothing to resume, and nothing was written")
	paused, err := f.Pause(ctx, testJob, "ann", strings.Repeat("long ", 1000))
	require.NoError(t, err)
	require.True(t, paused.Paused)
	require.LessOrEqual(t, len(paused.Reason), MaxNote)
	_, _, err = f.Claim(ctx, claim)
	require.ErrorIs(t, err, ErrControlChanged, "once pause has returned nothing is claimed that was decided before")

	resumed, err := f.Resume(ctx, testJob, "bob", "the bank is open")
	require.NoError(t, err)
	require.Equal(t, Control{By: "bob", Reason: "the bank is open", At: resumed.At}, resumed)
	again, err := f.Resume(ctx, testJob, "eve", "")
	require.NoError(t, err)
	require.Equal(t, resumed, again, "it was not paused: nothing changes")
}

func TestSharedLocksAreOfOneRunEach(t *testing.T) {
	f := setup(t)
	claim := func(i int) (Owned, error) {
		c := f.claimOf(i)
		c.Shared = true
		owned, view, err := f.Claim(t.Context(), c)
		f.def.View = view
		return owned, err
	}
	a, err := claim(0)
	require.NoError(t, err)
	b, err := claim(1)
	require.NoError(t, err, "another run of the job")
	for _, o := range []Owned{a, b} {
		lock, err := f.LockOf(t.Context(), testJob, o.Run.ID)
		require.NoError(t, err)
		require.Equal(t, o.Run.ID, lock.Run)
		require.Equal(t, testJob, f.keys.JobOfLock(lock.Key))
	}
	next := a.Run
	next.Attempt = 2
	_, _, err = f.TakeOver(t.Context(), Succession{Term: f.term, Lost: a, Next: next, View: f.def.View, Lease: f.lease(60)})
	require.ErrorIs(t, err, ErrLocked, "its own lock counts, whatever the policy is by now")
	_, err = f.Finish(t.Context(), a, succeeded(a.Run), f.def.View)
	require.NoError(t, err)
	lock, err := f.LockOf(t.Context(), testJob, a.Run.ID)
	require.NoError(t, err)
	require.Nil(t, lock)
	lock, err = f.LockOf(t.Context(), testJob, b.Run.ID)
	require.NoError(t, err)
	require.NotNil(t, lock, "only its own lock goes")
}
