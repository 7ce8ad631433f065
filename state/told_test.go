package state

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func failed(r Run) Run {
	r.Status, r.FinishedAt, r.Error = Failed, r.StartedAt.Add(time.Second), "no money"
	return r
}

// failing is a job that has an incident, untold.
func failing(t *testing.T) (*fixture, View) {
	t.Helper()
	f := setup(t)
	owned, view := f.mustClaim(0)
	owned.Alert = &AlertSpec{AfterFailures: 1, Recovered: true, Notify: "test"}
	view, err := f.Finish(t.Context(), owned, failed(owned.Run), view)
	require.NoError(t, err)
	require.JSONEq(t, `[{"kind":"failing","run":"20261130T010000Z","since":"2026-11-30T01:00:01Z","count":1,"error":"no money","untold":true}]`,
		string(encode(view.Status.Alerting)))
	require.Equal(t, view.Status, f.status())
	return f, view
}

func (f *fixture) toldOf(view View) Told {
	rules := &AlertSpec{AfterFailures: 1, Recovered: true, Notify: "test"}
	in, kind, _ := view.Status.Owed(rules)
	return Told{Term: f.term, Job: testJob, UID: "u1", View: view, Alert: rules, Incident: in, Kind: kind}
}

func TestAnIncidentIsMarkedAsTold(t *testing.T) {
	t.Parallel()
	f, view := failing(t)
	stale := f.toldOf(view)
	view, err := f.MarkTold(t.Context(), stale)
	require.NoError(t, err)
	require.Equal(t, view.Status, f.status())
	require.True(t, view.Status.Alerts(AlertFailing))
	_, _, owed := view.Status.Owed(stale.Alert)
	require.False(t, owed)

	again, err := f.MarkTold(t.Context(), stale) // by who knows the status before
	require.NoError(t, err)
	require.Equal(t, view, again, "nothing was to be written")
}

func TestMarkingIsRefusedByEachOfItsCompares(t *testing.T) {
	t.Parallel()
	f, view := failing(t)
	for name, tc := range map[string]struct {
		change func(*Told)
		err    error
	}{
		"the term is over":  {func(c *Told) { c.Term.Revision-- }, ErrNotLeading},
		"it is another job": {func(c *Told) { c.UID = "u2" }, ErrStatusReplaced},
		"it cannot be read": {func(c *Told) { c.View.Broken = ErrBadRecord }, ErrStatusReplaced},
	} {
		c := f.toldOf(view)
		tc.change(&c)
		_, err := f.MarkTold(t.Context(), c)
		require.ErrorIs(t, err, tc.err, name)
		require.Equal(t, view.Status, f.status(), name)
	}

	c := f.toldOf(view)
	require.NoError(t, replaceStatus(f, `{"uid":"u2"}`))
	_, err := f.MarkTold(t.Context(), c)
	require.ErrorIs(t, err, ErrStatusReplaced, "since it was read")
}

func replaceStatus(f *fixture, value string) error {
	_, err := f.client.Put(f.t.Context(), f.keys.Status(testJob), value)
	return err
}

func TestAnUnknownMarkIsSettled(t *testing.T) {
	t.Parallel()
	f, view := failing(t)
	f.committer = faulty{Committer: f.committer, after: first(1, context.DeadlineExceeded)}
	view, err := f.MarkTold(t.Context(), f.toldOf(view))
	require.NoError(t, err)
	require.False(t, view.Status.Alerting[0].Untold)
	require.Equal(t, view.Status, f.status())
}

// overrunning is a run of ours that may go on for a minute.
func overrunning(t *testing.T) (*fixture, Owned, View) {
	t.Helper()
	f := setup(t)
	owned, view := f.mustClaim(0)
	owned.Alert = &AlertSpec{Overrun: Duration(time.Minute), Notify: "test"}
	return f, owned, view
}

func TestAnOverrunIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, owned, stale := overrunning(t)
	f.committer = faulty{Committer: f.committer, after: first(1, context.DeadlineExceeded)}
	view, opened, err := f.Overrun(t.Context(), owned, f.at, stale)
	require.NoError(t, err)
	require.True(t, opened, "though the answer was lost")
	require.Equal(t, []Incident{{Kind: AlertOverrun, Run: owned.Run.ID, Since: f.at, Untold: true}}, f.status().Alerting)
	_, rev, err := f.Run(t.Context(), testJob, owned.Run.ID)
	require.NoError(t, err)
	require.Equal(t, owned.Revision, rev, "the record, and with it the fencing token, is as it was")

	// After a retry, whoever makes the next attempt says nothing new.
	next := owned.Run
	next.Retries++
	owned, view, err = f.Retry(t.Context(), owned, next, view)
	require.NoError(t, err)
	_, opened, err = f.Overrun(t.Context(), owned, f.at, view)
	require.NoError(t, err)
	require.False(t, opened)

	view, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	require.False(t, view.Status.Alerts(AlertOverrun))
	require.True(t, view.Status.Alerting[0].Untold, "it is still owed")
}

func TestAnOverrunIsItsOwnersToSay(t *testing.T) {
	t.Parallel()
	f, owned, view := overrunning(t)
	theirs := owned
	theirs.Locked--
	_, opened, err := f.Overrun(t.Context(), theirs, f.at, view)
	require.ErrorIs(t, err, ErrLocked)
	require.False(t, opened)

	_, err = f.Finish(t.Context(), owned, succeeded(owned.Run), view)
	require.NoError(t, err)
	_, opened, err = f.Overrun(t.Context(), owned, f.at, view)
	require.ErrorIs(t, err, ErrLocked, "it is over")
	require.False(t, opened)
	require.Empty(t, f.status().Alerting)
}

func TestMissedTimesAreAnIncident(t *testing.T) {
	t.Parallel()
	f := setup(t)
	missed := Run{
		Job: testJob, ID: RunID(f.at), Trigger: ByCatchUp, ScheduledAt: f.at, Status: Missed, Reason: ReasonSuperseded,
		Count: 3, Until: f.at.Add(2 * time.Minute),
	}
	view, err := f.Record(t.Context(), Verdict{
		Term: f.term, Run: missed, UID: "u1", View: f.def.View, SpecRev: f.def.SpecRev, Alert: &AlertSpec{Missed: true},
	})
	require.NoError(t, err)
	in, opened := view.Status.OpenedBy(missed.ID)
	require.True(t, opened)
	require.Equal(t, Incident{Kind: AlertMissed, Run: missed.ID, Since: f.at, Count: 3}, in)
	require.Equal(t, view.Status, f.status())
}

// A run whose instance was lost, and that fails for that, counts like any other.
func TestAbandonedRunsAreIncidents(t *testing.T) {
	t.Parallel()
	f, owned, view := overrunning(t)
	view, _, err := f.Overrun(t.Context(), owned, f.at, view)
	require.NoError(t, err)
	require.NoError(t, f.Unlock(t.Context(), owned))
	owned.Alert = &AlertSpec{AfterFailures: 1, Overrun: 1}
	view, err = f.Abandon(t.Context(), f.term, owned, failed(owned.Run), view)
	require.NoError(t, err)
	require.True(t, view.Status.Alerts(AlertFailing))
	require.False(t, view.Status.Alerts(AlertOverrun))
}

// The sixth of a job's runs that go on for too long, which knows the status from before the others said so.
func TestAnOverrunThatIsOneTooManyIsNotOpened(t *testing.T) {
	t.Parallel()
	f := setup(t)
	view := f.def.View
	var all []Owned
	for i := range maxOverruns + 1 {
		c := f.claimOf(i)
		c.Shared, c.View = true, view
		owned, now, err := f.Claim(t.Context(), c)
		require.NoError(t, err)
		owned.Alert = &AlertSpec{Overrun: Duration(time.Minute)}
		all, view = append(all, owned), now
	}
	for i, owned := range all {
		_, opened, err := f.Overrun(t.Context(), owned, f.at, view)
		require.NoError(t, err)
		require.Equal(t, i < maxOverruns, opened)
	}
	require.Len(t, f.status().Alerting, maxOverruns)
}
