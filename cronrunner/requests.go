package cronrunner

import (
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// nextAsked is what is to be done for the requests of a job now.
func (t *term) nextAsked(js *jobState, room int, now time.Time) task {
	a := t.asks[js.name]
	if a == nil {
		return task{}
	}
	j, def := js.job, js.def
	queue := len(def.View.Status.Queue)
	switch {
	case len(a.runs) > 0:
		r := a.runs[0]
		status, reason := j.Overlap.admit(room, queue)
		if reason == state.ReasonCoalesced && len(r.Args) > 0 { // none that waits stands for these
			reason = state.ReasonOverlap
		}
		if def.Control.Paused { // since it was asked for
			status, reason = state.Skipped, state.ReasonPaused
		}
		run := runAsked(r.Request)
		if status == state.Running {
			return task{claims: true, op: func() effect { return t.claimAsked(j, def, run, state.Acted{Standing: r}) }}
		}
		run.Status, run.Reason = status, reason
		return task{op: func() effect { return t.recordAsked(def, run, state.Acted{Standing: r}) }}
	case len(a.backfills) > 0 && room == j.Overlap.limit() && queue == 0 && !def.Control.Paused: // one at a time
		r := a.backfills[0]
		run, acted := nextOfBackfill(j, j.clock(now), r)
		if r.Schedule != "" && r.Schedule != def.Spec.ScheduleID() {
			acted.Rest = nil
			return task{op: func() effect { return t.dropAsked(js, acted, "the job's schedule was edited since it was asked for") }}
		}
		if run.ID == "" {
			return task{op: func() effect { return t.dropAsked(js, acted, "it has no times in the past") }}
		}
		return task{claims: true, op: func() effect { return t.claimAsked(j, def, run, acted) }}
	}
	return task{}
}

// runAsked is the run that a trigger or a retry asks for.
func runAsked(r state.Request) state.Run {
	run := state.Run{
		Job: r.Job, ID: r.ID, Trigger: state.ByHand, ScheduledAt: r.ScheduledAt, Args: r.Args,
		RequestedBy: r.By, RequestWhy: r.Reason,
	}
	if r.Kind == state.AskRetry {
		run.Trigger, run.RetryOf = state.ByRetry, r.Run
	}
	return run
}

// nextOfBackfill is the next run of a backfill and what is left of it then; a run without an id when there is
// none. What the schedule has yet to decide, by the job's own clock, is not in the past, and ends the range.
func nextOfBackfill(j *job, now time.Time, r state.Standing) (state.Run, state.Acted) {
	acted := state.Acted{Standing: r}
	to := minTime(r.To, now)
	at := j.schedule.Next(r.Next.Add(-time.Nanosecond)) // which is in the second before
	if at.IsZero() || at.After(to) {
		return state.Run{}, acted
	}
	if next := j.schedule.Next(at); !next.IsZero() && !next.After(to) {
		rest := r.Request
		rest.Next, rest.Done = next, r.Done+1
		acted.Rest = &rest
	}
	_, suffix, _ := strings.Cut(r.ID, "-")
	return state.Run{
		Job: r.Job, ID: state.RunID(at) + "-" + suffix, Trigger: state.ByBackfill, ScheduledAt: at,
		RequestedBy: r.By, RequestWhy: r.Reason,
	}, acted
}

// claimAsked makes a run ours that people asked for, and starts it.
func (t *term) claimAsked(j *job, def state.Definition, run state.Run, acted state.Acted) effect {
	now := t.now().UTC().Truncate(time.Millisecond)
	view, rev, err := t.claimRun(j, def, state.Claim{Run: begun(run, j, t.s.self.ID, t.held.Revision, now), Acted: &acted})
	return func(t *term) error {
		js := t.jobs[j.Name]
		switch {
		case err == nil:
			t.acted(acted.Standing, acted.Rest, rev)
		case errors.Is(err, state.ErrRunExists):
			// An earlier try of the request, whose answer was lost, was acted on before it was made again.
			t.work(js, func() effect { return t.dropAsked(js, acted, "the run was made for it before") })
			return nil
		}
		return t.settledAsked(js, acted.Standing, view, err)
	}
}

// recordAsked writes down that a run that people asked for waits, or why it is not run.
func (t *term) recordAsked(def state.Definition, run state.Run, acted state.Acted) effect {
	run.Instance, run.Term = t.s.self.ID, t.held.Revision
	if run.Status.Final() {
		run.FinishedAt = t.now().UTC().Truncate(time.Millisecond)
	}
	view, err := t.write(def, run, 0, def.View.Status.NextRunAt, &acted)
	return func(t *term) error {
		js := t.jobs[run.Job]
		switch {
		case err == nil:
			t.acted(acted.Standing, nil, 0)
		case errors.Is(err, state.ErrRunExists):
			t.work(js, func() effect { return t.dropAsked(js, acted, "the run was made for it before") })
			return nil
		}
		return t.settledAsked(js, acted.Standing, view, err)
	}
}

func (t *term) settledAsked(js *jobState, r state.Standing, view state.View, err error) error {
	switch {
	case errors.Is(err, state.ErrRequestGone):
		t.acted(r, nil, 0)
		err = nil
	case errors.Is(err, state.ErrLocked): // by a run that the status does not know
		t.leaveLocked(js)
		err = nil
	}
	return t.settled(js, view, err)
}

// dropAsked takes away a request, or a part of it, that nothing can come of.
func (t *term) dropAsked(js *jobState, acted state.Acted, why string) effect {
	rev, err := t.s.store.Drop(t.s.attempts.recording, t.held, acted)
	return func(t *term) error {
		if err == nil {
			t.log.Warn("nothing more comes of a request", zap.String("job", acted.Job), zap.String("request", acted.ID), zap.String("why", why))
			t.acted(acted.Standing, acted.Rest, rev)
		}
		return t.settledAsked(js, acted.Standing, state.View{}, err)
	}
}

// refuseNext answers the requests for jobs that are not among ours, one at a time: they may be very many, and of one
// job, and the others go on meanwhile. Like retire it does not count among the operations that the leader's heart
// waits for.
func (t *term) refuseNext() {
	for !t.refusing && len(t.refusals) > 0 {
		r := t.refusals[0]
		t.refusals = t.refusals[1:]
		if t.standing[r.Key].Revision != r.Revision {
			continue // it is gone
		}
		t.refusing = true
		t.s.attempts.work.Go(func() {
			apply := t.refuse(r)
			t.tell(func(t *term) error {
				t.refusing = false
				err := apply(t)
				t.refuseNext()
				return err
			})
		})
	}
}

// refuse answers a request for a job that is not among ours: with a record that says so, if it asked for a
// run. What it wants canceled either has an owner, who hears of it too, or is over; an owner who ends it before he hears
// leaves the request to us.
func (t *term) refuse(r state.Standing) effect {
	as := t.s.attempts
	acted := state.Acted{Standing: r}
	defs, err := t.s.store.Definitions(as.recording, []string{r.Job})
	def := defs[r.Job]
	gone := true
	switch {
	case err != nil:
	case r.Kind == state.AskCancel:
		gone, err = t.dropIfOver(r)
	case r.Kind == state.AskBackfill, def.SpecRev == 0, def.Broken != nil:
		t.log.Warn("request dropped: the job is not among the leader's jobs", zap.String("job", r.Job), zap.String("request", r.ID))
		_, err = t.s.store.Drop(as.recording, t.held, acted)
	default:
		run := runAsked(r.Request)
		run.Status, run.Reason = state.Skipped, state.ReasonRetired
		run.Instance, run.Term = t.s.self.ID, t.held.Revision
		run.FinishedAt = t.now().UTC().Truncate(time.Millisecond)
		_, err = t.write(def, run, 0, def.View.Status.NextRunAt, &acted)
		if errors.Is(err, state.ErrRunExists) || errors.Is(err, state.ErrStatusReplaced) { // there is nothing to account for it in
			_, err = t.s.store.Drop(as.recording, t.held, acted)
		}
	}
	return func(t *term) error {
		switch {
		case errors.Is(err, state.ErrNotLeading):
			return err
		case err == nil && gone, errors.Is(err, state.ErrRequestGone):
			t.acted(r, nil, 0)
		default:
			if err != nil {
				t.s.retrying("job", err)
				t.log.Warn("request not answered, trying again", zap.String("job", r.Job), zap.String("request", r.ID), zap.Error(err))
			}
			t.later(r, func(t *term) { t.route(r, false) }) // the job may be among ours by now
		}
		return nil
	}
}

// later has a request that could not be answered looked at again after a pause, if it still stands then.
func (t *term) later(r state.Standing, look func(*term)) {
	time.AfterFunc(maxPause, func() {
		t.tell(func(t *term) error {
			if t.standing[r.Key].Revision == r.Revision {
				look(t)
			}
			return nil
		})
	})
}
