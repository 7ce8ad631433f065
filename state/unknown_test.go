package state

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lossy applies the next commit, loses its answer, and lets others act before it is sent again.
type lossy struct {
	Committer

	lose      int
	meanwhile func()
}

func (l *lossy) Commit(ctx context.Context, m Mutation) (Result, error) {
	res, err := l.Committer.Commit(ctx, m)
	if l.lose > 0 {
		l.lose--
		l.meanwhile()
		return Result{}, context.DeadlineExceeded
	}
	return res, err
}

// loseNext has the answer of the next commit lost; what others do meanwhile is done through another store.
func (f *fixture) loseNext(meanwhile func(others *Store)) {
	others := NewStore(f.client, f.keys, StoreConfig{})
	f.committer = &lossy{Committer: f.committer, lose: 1, meanwhile: func() { meanwhile(others) }}
}

func nothing(*Store) {}

func TestABackfillThatWasBegunBeforeItsAnswerCameStandsOnce(t *testing.T) {
	f := setup(t)
	f.loseNext(func(others *Store) {
		all, err := others.Requests(t.Context())
		require.NoError(t, err)
		rest := all[0].Request
		rest.Next, rest.Done = f.at.Add(time.Minute), 1
		c := f.claimOf(0)
		c.Run.Trigger = ByBackfill
		c.Acted = &Acted{Standing: all[0], Rest: &rest}
		_, _, err = others.Claim(t.Context(), c)
		require.NoError(t, err)
	})
	r, err := f.Submit(t.Context(), Request{Kind: AskBackfill, Job: testJob, From: f.at, To: f.at.Add(5 * time.Minute)})
	require.NoError(t, err)
	all, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, r.ID, all[0].ID)
}

func TestATriggerThatWasActedOnBeforeItsAnswerCameIsMadeOnce(t *testing.T) {
	f := setup(t)
	f.loseNext(func(others *Store) {
		all, err := others.Requests(t.Context())
		require.NoError(t, err)
		c := f.claimOf(0)
		c.Run.ID, c.Run.Trigger, c.Run.ScheduledAt = all[0].ID, ByHand, all[0].ScheduledAt
		c.Acted = &Acted{Standing: all[0]}
		_, _, err = others.Claim(t.Context(), c)
		require.NoError(t, err)
	})
	_, err := f.Submit(t.Context(), Request{Kind: AskTrigger, Job: testJob})
	require.NoError(t, err)
	all, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, all, "it was acted on, and is not made again")
}

func TestDroppingAPartWhoseAnswerIsLost(t *testing.T) {
	f := setup(t)
	r := f.mustSubmit(Request{Kind: AskBackfill, From: f.at, To: f.at.Add(5 * time.Minute)})
	s := f.standing(r)
	rest := s.Request
	rest.Next, rest.Done = f.at.Add(time.Minute), 1
	f.loseNext(nothing)
	rev, err := f.Drop(t.Context(), f.term, Acted{Standing: s, Rest: &rest})
	require.NoError(t, err)
	require.Equal(t, rev, f.standing(r).Revision)
}

// A checkpoint whose answer was lost and that is sent again must not undo a later one.
func TestACheckpointThatIsSentAgainUndoesNothing(t *testing.T) {
	f := setup(t)
	owned, _ := f.mustClaim(0)
	note := f.CheckpointNote(testJob, owned.Run.ID, PerRun)
	f.loseNext(nothing)
	first, err := f.SaveCheckpoint(t.Context(), owned, note, []byte(`1`))
	require.NoError(t, err)
	second, err := f.SaveCheckpoint(t.Context(), owned, first, []byte(`2`))
	require.NoError(t, err)

	m := f.noteMutation(owned, first, []byte(`"an earlier try of the first, applied late"`))
	res, err := f.committer.Commit(t.Context(), m)
	require.NoError(t, err)
	require.False(t, res.Succeeded)
	c, now, ok, err := f.LoadCheckpoint(t.Context(), note, "u1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, second.Revision, now.Revision)
	require.JSONEq(t, `2`, string(c.Value))

	other := owned
	other.Revision++ // somebody who does not own the run
	_, err = f.SaveCheckpoint(t.Context(), other, second, []byte(`3`))
	require.ErrorIs(t, err, ErrNotOwner)
	next := owned.Run
	next.Attempt = 2
	_, _, err = f.Retry(t.Context(), other, next, f.def.View)
	require.ErrorIs(t, err, ErrNotOwner)
	_, _, err = f.Again(t.Context(), other, next, f.def.View)
	require.ErrorIs(t, err, ErrNotOwner)
	_, err = f.client.Delete(t.Context(), f.keys.Lock(testJob))
	require.NoError(t, err)
	_, _, err = f.Again(t.Context(), owned, next, f.def.View)
	require.ErrorIs(t, err, ErrLocked, "no attempt begins without the lock")
}

func TestARequestIsRefusedWhenItsJobChangesMeanwhile(t *testing.T) {
	f := setup(t)
	def, err := f.Job(t.Context(), testJob)
	require.NoError(t, err)
	r := Request{Kind: AskTrigger, Job: testJob, ID: newRequestID(f.at, "m"), At: f.at, ScheduledAt: f.at}
	_, err = f.Pause(t.Context(), testJob, "", "")
	require.NoError(t, err)
	require.ErrorIs(t, f.submit(t.Context(), r, def), errAskAgain, "it was paused since it was read")
	_, err = f.Resume(t.Context(), testJob, "", "")
	require.NoError(t, err)
	def, err = f.Job(t.Context(), testJob)
	require.NoError(t, err)
	spec := def.Spec
	spec.Retired = true
	_, err = f.Define(t.Context(), f.term, def, spec, def.View.Status)
	require.NoError(t, err)
	require.ErrorIs(t, f.submit(t.Context(), r, def), errAskAgain, "it was retired since it was read")
}

func TestARunBetweenTwoAttemptsIsNotCountedAsRecovered(t *testing.T) {
	f := setup(t)
	o, view := f.mustClaim(0)
	next := o.Run
	next.Retries, next.RetryAt = 1, time.Now().Add(time.Hour)
	o, view, err := f.Retry(t.Context(), o, next, view)
	require.NoError(t, err)
	require.Equal(t, int64(1), view.Status.RetriedTotal)
	require.NoError(t, f.Unlock(t.Context(), o))
	_, view, err = f.TakeOver(t.Context(), Succession{Term: f.term, Lost: o, Next: next, View: view, Lease: f.lease(60)})
	require.NoError(t, err)
	require.Zero(t, view.Status.RecoveredTotal)
}

// A job that was deleted and created again begins without the old one's checkpoint.
func TestACheckpointIsOfOneCreationOfItsJob(t *testing.T) {
	f := setup(t)
	o, view := f.mustClaim(0)
	o.Scope, o.Noted = PerJob, true
	note := f.CheckpointNote(testJob, o.Run.ID, PerJob)
	_, err := f.SaveCheckpoint(t.Context(), o, note, []byte(`{"account":4711}`))
	require.NoError(t, err)
	end := o.Run
	end.Status = Failed
	_, err = f.Finish(t.Context(), o, end, view)
	require.NoError(t, err)
	_, _, ok, err := f.LoadCheckpoint(t.Context(), note, "u1")
	require.NoError(t, err)
	require.True(t, ok, "carried on")
	_, _, ok, err = f.LoadCheckpoint(t.Context(), note, "u2")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestAskingToReplaceIsTheLeaders(t *testing.T) {
	f := setup(t)
	o, _ := f.mustClaim(0)
	old := f.term
	f.term = f.elect()
	require.ErrorIs(t, f.AskToReplace(t.Context(), old, testJob, o.Run.ID, "a"), ErrNotLeading)
	require.ErrorIs(t, f.AskToReplace(t.Context(), f.term, testJob, "20200101T000000Z", "a"), ErrNotFound)
	person := f.mustSubmit(Request{Kind: AskCancel, Run: o.Run.ID, By: "ann"})
	require.NoError(t, f.AskToReplace(t.Context(), f.term, testJob, o.Run.ID, "a"))
	require.Equal(t, "ann", f.standing(person).By, "what a person has asked for stands")
}

// A run has ended since the leader read the status: what was to be skipped, since it ran, may run.
func TestARunIsNotSkippedForOneThatHasEnded(t *testing.T) {
	f := setup(t)
	owned, busy := f.mustClaim(0)
	_, err := f.Finish(t.Context(), owned, succeeded(owned.Run), busy)
	require.NoError(t, err)
	run := f.running(1)
	for _, status := range []RunStatus{Skipped, Pending} {
		run.Status = status
		_, err = f.Record(t.Context(), Verdict{Term: f.term, Run: run, UID: "u1", View: busy, SpecRev: f.def.SpecRev})
		require.ErrorIs(t, err, ErrStatusReplaced)
	}
	run.Status, run.Reason = Missed, ReasonWindow
	_, err = f.Record(t.Context(), Verdict{Term: f.term, Run: run, UID: "u1", View: busy, SpecRev: f.def.SpecRev})
	require.NoError(t, err, "that has nothing to do with it")
}
