package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxContention is how often a transition accounts anew because only the job's status had moved. Each
// time somebody else got a write of his own through.
const maxContention = 50

// Term is what a leader writes under: its election key and the create revision of that key.
type Term struct {
	Key      string
	Revision int64
}

// View is a job's status as a writer last knew it, and the mod revision it had; 0 when there was none.
type View struct {
	Status   JobStatus
	Revision int64
	Broken   error // ErrBadRecord when the status cannot be decoded
}

// guard is one compare of a transition and the error that it is refused with. want is what the mod
// revision, or with created the create revision, of the key must be; 0 is a key that must be absent.
type guard struct {
	key     string
	created bool
	want    int64
	refused error
}

// cmp is the guard for etcd. It is written into the compare itself: clientv3.Compare copies what it is given, by
// reflection, and nine of them a run add up.
func (g guard) cmp() (c clientv3.Cmp) {
	p := c.GetCompare()
	p.Key, p.Result = []byte(g.key), etcdserverpb.Compare_EQUAL
	if g.created || g.want == 0 {
		p.Target, p.TargetUnion = etcdserverpb.Compare_CREATE, &etcdserverpb.Compare_CreateRevision{CreateRevision: g.want}
	} else {
		p.Target, p.TargetUnion = etcdserverpb.Compare_MOD, &etcdserverpb.Compare_ModRevision{ModRevision: g.want}
	}
	return c
}

// putBytes is a put of a value that nobody changes any more: clientv3.OpPut takes a string, and copies it.
func putBytes(key string, value []byte, opts ...clientv3.OpOption) clientv3.Op {
	op := clientv3.OpPut(key, "", opts...)
	op.WithValueBytes(value)
	return op
}

func (g guard) holds(kv *mvccpb.KeyValue) bool {
	switch {
	case kv == nil:
		return g.want == 0
	case g.created:
		return kv.CreateRevision == g.want
	default:
		return kv.ModRevision == g.want
	}
}

// transition is one step of one run, as data: what must hold, the record and the status to write, and
// what else goes with them.
type transition struct {
	guards  []guard
	run     Run
	uid     string // of the job's creation; a status of another creation, or a broken one, is left alone
	view    View
	decides bool // made by the leader, who may not decide without the status that it decides on
	busy    bool // and who has decided so since of what runs and waits; if that is not so any more, he decides anew
	account func(JobStatus) JobStatus
	extra   []clientv3.Op // lock put or deleted
}

// apply makes the transition in one transaction and returns its revision and the status after it. When
// it is refused, the error is that of the first guard that did not hold, and the view is what stands.
func (s *Store) apply(ctx context.Context, t transition) (int64, View, error) {
	runKey, value := s.keys.Run(t.run.Job, t.run.ID), t.run.encode()
	statusKey := s.keys.Status(t.run.Job)
	decidedOn := t.view.Status
	for range maxContention {
		next, counted := t.view.Status, t.view.Broken == nil && t.view.Status.UID == t.uid
		if counted {
			next = t.account(next)
		} else if t.decides {
			return 0, t.view, fmt.Errorf("job %s: %w", t.run.Job, ErrStatusReplaced)
		}
		m := Mutation{
			Job: t.run.Job,
			If:  make([]clientv3.Cmp, 0, len(t.guards)+1), Then: make([]clientv3.Op, 0, len(t.extra)+2),
		}
		m.Then = append(append(m.Then, putBytes(runKey, value)), t.extra...)
		for _, g := range t.guards {
			m.If = append(m.If, g.cmp())
		}
		if counted {
			m.If = append(m.If, guard{key: statusKey, want: t.view.Revision}.cmp())
			m.Then = append(m.Then, putBytes(statusKey, next.encode()))
		}
		res, err := s.settle(ctx, m)
		if isLeaseNotFound(err) {
			err = fmt.Errorf("run %s of job %s: %w: %w", t.run.ID, t.run.Job, ErrLeaseLost, err)
		}
		if err != nil {
			return 0, t.view, err
		}
		if res.Succeeded {
			if counted {
				t.view = View{Status: next, Revision: res.Revision}
			}
			return res.Revision, t.view, nil
		}

		stands, err := s.standing(ctx, append([]string{runKey, statusKey}, keysOf(t.guards)...))
		if err != nil {
			return 0, t.view, err
		}
		t.view = viewOf(t.run.Job, stands[1])
		if kv := stands[0]; kv != nil && bytes.Equal(kv.Value, value) {
			return kv.ModRevision, t.view, nil // an earlier try, whose answer was lost, had landed
		}
		for i, g := range t.guards {
			if !g.holds(stands[i+2]) {
				return 0, t.view, fmt.Errorf("run %s of job %s: %w", t.run.ID, t.run.Job, g.refused)
			}
		}
		now := &t.view.Status
		if t.decides && !now.Cursor.Equal(decidedOn.Cursor) ||
			t.busy && (!slices.Equal(now.Live, decidedOn.Live) || !slices.Equal(now.Queue, decidedOn.Queue)) {
			// Somebody has decided meanwhile: an earlier operation of the same term, whose answer was late. Or a run
			// has ended: what was to wait for it, or to be skipped, may run.
			return 0, t.view, fmt.Errorf("job %s: %w", t.run.Job, ErrStatusReplaced)
		}
		// Only the rest of the status has moved: account for the run on what stands now.
	}
	return 0, t.view, fmt.Errorf("job %s: %w", t.run.Job, ErrContended)
}

// guarded makes a change that is no step of a run: then, if all guards hold. It returns the revision at which it
// was made. When it is refused it returns what stands at the guards' keys, and the error of the first that does not
// hold; ErrContended when all do by now. Its other errors are ctx's, and those with which etcd refuses.
func (s *Store) guarded(ctx context.Context, job string, guards []guard, then []clientv3.Op) (rev int64, stands []*mvccpb.KeyValue, err error) {
	m := Mutation{Job: job, Then: then}
	for _, g := range guards {
		m.If = append(m.If, g.cmp())
		m.Else = append(m.Else, clientv3.OpGet(g.key))
	}
	res, err := s.settle(ctx, m)
	if err != nil || res.Succeeded {
		return res.Revision, nil, err
	}
	stands = firstKVs(res)
	for i, g := range guards {
		if !g.holds(stands[i]) {
			return 0, stands, fmt.Errorf("job %s: %w", job, g.refused)
		}
	}
	return 0, stands, fmt.Errorf("job %s: %w", job, ErrContended)
}

func keysOf(guards []guard) []string {
	keys := make([]string, len(guards))
	for i, g := range guards {
		keys[i] = g.key
	}
	return keys
}

// standing reads what stands at keys, all at one revision, after a transition was refused. It is no part of the
// transition: hardly any is refused, and what would be read then made each of them half as large again. Its
// error is ctx's: without this answer it is not known whether an earlier try had landed.
func (s *Store) standing(ctx context.Context, keys []string) ([]*mvccpb.KeyValue, error) {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(key)
	}
	wait := s.backoff("read", time.Second)
	for {
		callCtx, cancel := context.WithTimeout(ctx, s.timeout)
		resp, err := s.client.Txn(callCtx).Then(ops...).Commit()
		cancel()
		if err == nil {
			return firstKVs(Result{Responses: resp.Responses}), nil
		}
		wait.failed(s.log, "what refused a transition is not known yet, trying again", err)
		if !wait.sleep(ctx, nil) {
			return nil, context.Cause(ctx)
		}
	}
}

func isLeaseNotFound(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// viewOf decodes a status key; kv may be nil.
func viewOf(job string, kv *mvccpb.KeyValue) View {
	if kv == nil {
		return View{}
	}
	st, err := decode[JobStatus]("status of job "+job, kv.Value)
	return View{Status: st, Revision: kv.ModRevision, Broken: err}
}
