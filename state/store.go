package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// StoreConfig configures a Store.
type StoreConfig struct {
	// Timeout of each call to etcd. Default 5 s.
	Timeout time.Duration
	// Hook is told of every transaction. Default none.
	Hook CommitHook
	// RetryHook is told of every call that is tried again. Default none.
	RetryHook RetryHook
	// Logger gets warnings of them. Default none.
	Logger *zap.Logger
}

// Store reads and writes the records of one namespace. Safe for concurrent use.
type Store struct {
	client    *clientv3.Client
	keys      Keys
	committer Committer
	group     *group // the committer, but in tests of its faults
	timeout   time.Duration
	retryHook RetryHook
	log       *zap.Logger
}

// NewStore returns a store on client. It does not close the client.
func NewStore(client *clientv3.Client, keys Keys, cfg StoreConfig) *Store {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Hook == nil {
		cfg.Hook = func(time.Duration, int, error) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	g := &group{kv: client, timeout: cfg.Timeout, hook: cfg.Hook}
	return &Store{
		client:    client,
		keys:      keys,
		committer: g,
		group:     g,
		timeout:   cfg.Timeout,
		retryHook: cfg.RetryHook,
		log:       cfg.Logger,
	}
}

// backoff is for calls of that operation.
func (s *Store) backoff(operation string, limit time.Duration) *backoff {
	return &backoff{operation: operation, hook: s.retryHook, next: retryFloor, limit: limit}
}

// Wait returns when no write is on its way any more whose caller has given it up, which takes about the timeout of a
// call at most.
func (s *Store) Wait() { s.group.wait() }

// Keys are the keys of the store's namespace.
func (s *Store) Keys() Keys { return s.keys }

// Claim is what a leader claims a run with.
type Claim struct {
	Term       Term
	Run        Run // status running
	UID        string
	View       View
	SpecRev    int64 // mod revision of the spec on which the leader decided
	ControlRev int64 // likewise of the control; 0 when there is none
	Prior      int64 // mod revision of the record of a run that was pending; 0 for a new one
	Lease      clientv3.LeaseID
	Shared     bool      // lock the run alone, not its job: others of the job may run beside it
	Next       time.Time // when the job is due next
	Acted      *Acted    // the request that the run was asked for by; nil for none
	Before     []Run     // final records of scheduled times before, which were decided with it: in one write, since the job is late
	Alert      *AlertSpec
}

// Owned is a run that this instance owns: Revision is the mod revision of its record, which is both the
// proof of ownership and the fencing token of the attempt.
type Owned struct {
	Run      Run
	UID      string
	Revision int64
	Shared   bool  // the lock is of the run alone
	Locked   int64 // create revision of the lock
	Scope    Scope // of its checkpoints; PerRun when empty
	Noted    bool  // it may have progress or checkpoints, which go when it ends
	Canceled bool  // it is to be canceled; the request goes when it ends
	Alert    *AlertSpec
}

// Claim makes the run ours and locks its job, if the term is held, the run has no record or is pending as
// it was read, the job is not locked, its spec and control are those that the leader decided on, and the
// request that it acts on still stands. Errors: ErrNotLeading, ErrRunExists (also of one of Before), ErrNotOwner,
// ErrLocked, ErrSpecChanged, ErrControlChanged, ErrRequestGone, ErrLeaseLost; ErrStatusReplaced when something else was
// decided meanwhile, ErrContended; ctx's when the outcome stays unknown. The view is what stands afterwards, also with
// an error.
func (s *Store) Claim(ctx context.Context, c Claim) (Owned, View, error) {
	if err := step(statusAt(c.Prior), c.Run.Status); err != nil {
		return Owned{}, c.View, err
	}
	guards, ops := s.act(c.Acted)
	guards = append(s.leaderMay(c.Term, c.Run, c.Prior, c.SpecRev, c.ControlRev), guards...)
	guards = append(guards, guard{key: s.lockKey(&c.Run, c.Shared), refused: ErrLocked})
	ops = append(ops, s.putLock(&c.Run, c.Shared, c.Lease))
	for i := range c.Before {
		r := &c.Before[i]
		if err := step("", r.Status); err != nil || !r.Status.Final() {
			return Owned{}, c.View, cmp.Or(err, fmt.Errorf("run %s of job %s is %s, and not over", r.ID, r.Job, r.Status))
		}
		key := s.keys.Run(r.Job, r.ID)
		guards, ops = append(guards, guard{key: key, refused: ErrRunExists}), append(ops, putBytes(key, r.encode()))
	}
	rev, view, err := s.apply(ctx, transition{
		guards: guards, run: c.Run, uid: c.UID, view: c.View, decides: true, busy: len(c.Before) > 0, extra: ops,
		account: func(st JobStatus) JobStatus {
			for i := range c.Before {
				st = st.NotRun(&c.Before[i]).alerted(c.Alert, &c.Before[i])
			}
			st = st.Started(&c.Run)
			st.NextRunAt = c.Next
			return st
		},
	})
	return Owned{Run: c.Run, UID: c.UID, Revision: rev, Shared: c.Shared, Locked: rev}, view, err
}

// Verdict is a leader's decision that a scheduled time is not run, or not now.
type Verdict struct {
	Term       Term
	Run        Run   // status skipped, missed or pending; canceled if it was pending
	Prior      int64 // mod revision of the record of a run that was pending; 0 for a new one
	UID        string
	View       View
	SpecRev    int64
	ControlRev int64
	Next       time.Time
	Acted      *Acted // the request that the run was asked for by; nil for none
	Alert      *AlertSpec
}

// Record writes a verdict. Errors as for Claim, without those of the lock.
func (s *Store) Record(ctx context.Context, v Verdict) (View, error) {
	if err := step(statusAt(v.Prior), v.Run.Status); err != nil {
		return v.View, err
	}
	account := JobStatus.NotRun
	switch {
	case v.Run.Status == Pending && v.Prior == 0:
		account = JobStatus.Queued
	case v.Run.Status == Pending:
		account = JobStatus.Merged
	}
	guards, ops := s.act(v.Acted)
	if v.Run.Status.Final() && v.Prior != 0 {
		ops = append(ops, s.settleCancel(&v.Run))
	}
	_, view, err := s.apply(ctx, transition{
		guards: append(s.leaderMay(v.Term, v.Run, v.Prior, v.SpecRev, v.ControlRev), guards...),
		run:    v.Run, uid: v.UID, view: v.View, decides: true, busy: v.Run.Status == Pending || v.Run.Status == Skipped, extra: ops,
		account: func(st JobStatus) JobStatus {
			st = account(st, &v.Run).alerted(v.Alert, &v.Run)
			st.NextRunAt = v.Next
			return st
		},
	})
	return view, err
}

// Finish writes the end of a run that is ours, and unlocks its job. Its error is ErrNotOwner when the
// run was taken over or ended by somebody else; then nothing is written. An owner that lost only its
// lock may still record the truth.
func (s *Store) Finish(ctx context.Context, o Owned, end Run, view View) (View, error) {
	if err := step(o.Run.Status, end.Status); err != nil {
		return view, err
	}
	t := transition{
		guards: []guard{s.isOwner(&o), s.isLocked(&o)}, run: end, uid: o.UID, view: view,
		account: func(st JobStatus) JobStatus { return st.Finished(&end).alerted(o.Alert, &end) },
		extra:   []clientv3.Op{s.deleteLock(&o)},
	}
	if o.Canceled {
		t.extra = append(t.extra, s.settleCancel(&end))
	}
	if o.Noted {
		t.extra = append(t.extra, s.clearNotes(&end, o.Scope)...)
	}
	_, view, err := s.apply(ctx, t)
	if errors.Is(err, ErrLocked) { // not by us any more
		t.guards, t.extra, t.view = t.guards[:1], t.extra[1:], view
		_, view, err = s.apply(ctx, t)
	}
	return view, err
}

// isLocked guards that the lock is the one that the run was claimed with.
func (s *Store) isLocked(o *Owned) guard {
	return guard{key: s.lockKey(&o.Run, o.Shared), created: true, want: o.Locked, refused: ErrLocked}
}

func (s *Store) isOwner(o *Owned) guard {
	return guard{key: s.keys.Run(o.Run.Job, o.Run.ID), want: o.Revision, refused: ErrNotOwner}
}

// Retry writes that an attempt of ours has failed and that another begins at next.RetryAt. The run stays ours,
// and locked. Errors: ErrNotOwner, ErrContended; ctx's when the outcome stays unknown.
func (s *Store) Retry(ctx context.Context, o Owned, next Run, view View) (Owned, View, error) {
	if err := step(o.Run.Status, next.Status); err != nil {
		return o, view, err
	}
	rev, view, err := s.apply(ctx, transition{
		guards: []guard{s.isOwner(&o)}, run: next, uid: o.UID, view: view,
		account: JobStatus.Retried,
	})
	if err == nil {
		o.Run, o.Revision = next, rev
	}
	return o, view, err
}

// Again begins the next attempt of a run of ours, which is still locked by us. Its revision is the fencing
// token. Errors: ErrNotOwner, ErrLocked, ErrContended; ctx's when the outcome stays unknown.
func (s *Store) Again(ctx context.Context, o Owned, next Run, view View) (Owned, View, error) {
	if err := step(o.Run.Status, next.Status); err != nil {
		return o, view, err
	}
	rev, view, err := s.apply(ctx, transition{
		guards: []guard{s.isOwner(&o), s.isLocked(&o)}, run: next, uid: o.UID, view: view,
		account: func(st JobStatus) JobStatus {
			st.LastStartedAt = next.StartedAt
			return st
		},
	})
	if err == nil {
		o.Run, o.Revision = next, rev
	}
	return o, view, err
}

// settleCancel deletes the request to cancel a run that ends, if there is one: nothing can come of it later.
func (s *Store) settleCancel(run *Run) clientv3.Op {
	return clientv3.OpDelete(s.keys.Cancel(run.Job, run.ID))
}

func (s *Store) deleteLock(o *Owned) clientv3.Op {
	return clientv3.OpDelete(s.lockKey(&o.Run, o.Shared))
}

// Unlock deletes the lock of a run that is ours, if it still is, and says nothing of the run: its owner
// has stopped without an end to record. Without it the lock would stay for as long as this instance
// lives, since an outage of etcd can give the lease behind it its full time again.
func (s *Store) Unlock(ctx context.Context, o Owned) error {
	m := Mutation{Job: o.Run.Job, If: []clientv3.Cmp{s.isLocked(&o).cmp()}, Then: []clientv3.Op{s.deleteLock(&o)}}
	if mutateUnlock {
		m.If = nil
	}
	_, err := s.settle(ctx, m)
	return err
}

// Succession is what a leader takes over a run with whose instance was lost.
type Succession struct {
	Term   Term
	Lost   Owned // the run as its record was read
	Next   Run   // its next attempt
	View   View
	Lease  clientv3.LeaseID
	Shared bool // as for Claim
}

// TakeOver makes the next attempt of a run ours: if the term is held, neither the run nor, unless Shared, its job
// is locked, and the record is as it was read. Errors: ErrNotLeading, ErrLocked, ErrNotOwner, ErrLeaseLost.
func (s *Store) TakeOver(ctx context.Context, t Succession) (Owned, View, error) {
	if err := step(t.Lost.Run.Status, t.Next.Status); err != nil {
		return Owned{}, t.View, err
	}
	rev, view, err := s.apply(ctx, transition{
		guards: s.leaderRecovers(t.Term, t.Lost, t.Shared), run: t.Next, uid: t.Lost.UID, view: t.View,
		account: func(st JobStatus) JobStatus {
			if t.Next.Recoveries == t.Lost.Run.Recoveries {
				return st // it was between two attempts: none was lost
			}
			return st.Recovered(&t.Next)
		},
		extra: []clientv3.Op{s.putLock(&t.Next, t.Shared, t.Lease)},
	})
	return Owned{Run: t.Next, UID: t.Lost.UID, Revision: rev, Shared: t.Shared, Locked: rev, Noted: true}, view, err
}

// Abandon ends a run whose instance was lost and which may not be resumed, or takes one that has ended, as
// its record says, out of a status that says that it runs. lost.Shared is as for TakeOver. Errors as there.
func (s *Store) Abandon(ctx context.Context, term Term, lost Owned, end Run, view View) (View, error) {
	if err := step(lost.Run.Status, end.Status); err != nil {
		return view, err
	}
	_, view, err := s.apply(ctx, transition{
		guards: s.leaderRecovers(term, lost, lost.Shared), run: end, uid: lost.UID, view: view,
		account: func(st JobStatus) JobStatus {
			if !slices.Contains(st.Live, end.ID) {
				return st // accounted for by now
			}
			return st.Finished(&end).alerted(lost.Alert, &end)
		},
		extra: append(s.clearNotes(&end, lost.Scope), s.settleCancel(&end)),
	})
	return view, err
}

// Forget takes a run out of a job's queue whose record says that it does not wait. Errors: ErrNotLeading,
// ErrStatusReplaced.
func (s *Store) Forget(ctx context.Context, term Term, job, id string, view View) (View, error) {
	next := view.Status.dequeued(&Run{ID: id})
	guards := []guard{
		{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading},
		{key: s.keys.Status(job), want: view.Revision, refused: ErrStatusReplaced},
	}
	rev, _, err := s.guarded(ctx, job, guards, []clientv3.Op{putBytes(s.keys.Status(job), next.encode())})
	if err != nil {
		return view, err
	}
	return View{Status: next, Revision: rev}, nil
}

// statusAt is the status of a run that a leader decides on: none yet, or pending.
func statusAt(prior int64) RunStatus {
	if prior == 0 {
		return ""
	}
	return Pending
}

func (s *Store) leaderMay(term Term, run Run, prior, specRev, controlRev int64) []guard {
	taken := ErrRunExists
	if prior != 0 {
		taken = ErrNotOwner
	}
	guards := []guard{
		{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading},
		{key: s.keys.Run(run.Job, run.ID), want: prior, refused: taken},
		{key: s.keys.Spec(run.Job), want: specRev, refused: ErrSpecChanged},
		{key: s.keys.Control(run.Job), want: controlRev, refused: ErrControlChanged},
	}
	if mutateTerm {
		return guards[1:]
	}
	return guards
}

// leaderRecovers has the run unlocked, and its job too unless others may run beside it. The job's overlap policy may
// have been another when the run was claimed.
func (s *Store) leaderRecovers(term Term, lost Owned, shared bool) []guard {
	guards := []guard{
		{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading},
		{key: s.keys.Run(lost.Run.Job, lost.Run.ID), want: lost.Revision, refused: ErrNotOwner},
		{key: s.keys.SharedLock(lost.Run.Job, lost.Run.ID), refused: ErrLocked},
	}
	if !shared {
		guards = append(guards, guard{key: s.keys.Lock(lost.Run.Job), refused: ErrLocked})
	}
	return guards
}

func (s *Store) lockKey(run *Run, shared bool) string {
	if shared {
		return s.keys.SharedLock(run.Job, run.ID)
	}
	return s.keys.Lock(run.Job)
}

func (s *Store) putLock(run *Run, shared bool, lease clientv3.LeaseID) clientv3.Op {
	return putBytes(s.lockKey(run, shared), Lock{Run: run.ID, Instance: run.Instance}.encode(), clientv3.WithLease(lease))
}

// getOne is a linearizable read of one key; nil when it is absent.
func (s *Store) getOne(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	resp, err := s.client.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return nil, err
	}
	return resp.Kvs[0], nil
}
