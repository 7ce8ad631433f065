package cronrunner

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

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

// The run of a job that is not among ours ends before its owner has heard that it is to be canceled.
func TestACancelThatARetiredJobsRunHasNotHeardOfIsTakenAway(t *testing.T) {
	st := newStill(t)
	js, owned := st.running("gone", "elsewhere")
	js.job = nil
	_, err := st.store.Submit(t.Context(), state.Request{Kind: state.AskCancel, Job: "gone", Run: owned.Run.ID})
	require.NoError(t, err)
	r, err := st.store.CancelOf(t.Context(), "gone", owned.Run.ID)
	require.NoError(t, err)
	st.standing[r.Key] = r
	require.NoError(t, st.refuse(r)(st.term))

	end := owned.Run
	end.Status, end.FinishedAt = state.Succeeded, time.Now().UTC()
	_, err = st.store.Finish(t.Context(), owned, end, js.def.View)
	require.NoError(t, err)
	for len(st.standing) > 0 {
		select {
		case apply := <-st.done:
			require.NoError(t, apply(st.term))
		case <-time.After(patience):
			require.Fail(t, "nobody looks at it again")
		}
	}
	st.requireNoRequests()
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
