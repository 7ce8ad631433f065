package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Told is what a leader notes when it has told of an incident.
type Told struct {
	Term     Term
	Job, UID string
	View     View
	Alert    *AlertSpec // by which the job alerts
	Incident Incident
	Kind     AlertKind // what was told; as Owed gave it
}

// MarkTold writes that an incident was told, and takes away what is settled by that, if the term is held. Should the
// leader die before, its successor tells it again. Errors: ErrNotLeading, ErrStatusReplaced, ErrContended; ctx's when
// the outcome stays unknown. The view is what stands afterwards, also with an error.
func (s *Store) MarkTold(ctx context.Context, t Told) (View, error) {
	held := guard{key: t.Term.Key, created: true, want: t.Term.Revision, refused: ErrNotLeading}
	view, _, err := s.amend(ctx, t.Job, t.UID, held, t.View, func(st JobStatus) JobStatus {
		return st.told(t.Alert, &t.Incident, t.Kind)
	})
	return view, err
}

// Overrun opens the incident that a run of ours goes on for longer than o.Alert allows, once, if the run does go on
// and we hold its lock: the record's revision moves with each attempt of ours, the lock's does not. since is when the
// run began, and view one since we own it. opened is false if it was said before that, or the job has too many such
// incidents. Errors: ErrLocked when the lock is not ours any more; otherwise as MarkTold.
func (s *Store) Overrun(ctx context.Context, o Owned, since time.Time, view View) (_ View, opened bool, err error) {
	ours := guard{key: s.lockKey(&o.Run, o.Shared), created: true, want: o.Locked, refused: ErrLocked}
	view, changed, err := s.amend(ctx, o.Run.Job, o.UID, ours, view, func(st JobStatus) JobStatus {
		return st.overrunning(o.Alert, o.Run.ID, since)
	})
	said := Incident{Kind: AlertOverrun, Run: o.Run.ID}
	return view, changed && slices.ContainsFunc(view.Status.Alerting, func(in Incident) bool { return in.same(&said) }), err
}

// amend changes the incidents in a job's status and nothing else, if g holds: no run goes a step. changed is false
// when change had nothing to change from the first; if it has nothing to change any more, an earlier try has landed, or
// what others have changed left it nothing. It is sent again until it is known, so change must have nothing to change in
// what it has changed already.
func (s *Store) amend(ctx context.Context, job, uid string, g guard, view View, change func(JobStatus) JobStatus) (_ View, changed bool, err error) {
	statusKey := s.keys.Status(job)
	for range maxContention {
		if view.Broken != nil || view.Status.UID != uid {
			return view, changed, fmt.Errorf("job %s: %w", job, ErrStatusReplaced)
		}
		next := change(view.Status)
		if slices.Equal(next.Alerting, view.Status.Alerting) {
			return view, changed, nil
		}
		changed = true
		guards := []guard{g, {key: statusKey, want: view.Revision, refused: ErrStatusReplaced}}
		rev, stands, err := s.guarded(ctx, job, guards, []clientv3.Op{putBytes(statusKey, next.encode())})
		if err == nil {
			return View{Status: next, Revision: rev}, true, nil
		}
		if stands != nil {
			view = viewOf(job, stands[1])
		}
		if !errors.Is(err, ErrStatusReplaced) {
			return view, false, err
		}
	}
	return view, false, fmt.Errorf("job %s: %w", job, ErrContended)
}
