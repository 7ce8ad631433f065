package state

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Definition is a job as it stands in etcd: its spec, control and status, each with the revision that a
// claim compares. Broken says why it cannot be read, if it cannot.
type Definition struct {
	Spec       Spec
	SpecRev    int64 // 0 when there is none
	Control    Control
	ControlRev int64
	View       View
	Broken     error
}

// Define writes a job's spec and status in one transaction, if the term is held and both are still as
// in was. It returns the definition as it now stands. Errors: ErrNotLeading, ErrSpecChanged,
// ErrStatusReplaced; ctx's when the outcome stays unknown.
func (s *Store) Define(ctx context.Context, term Term, was Definition, spec Spec, status JobStatus) (Definition, error) {
	specKey, statusKey := s.keys.Spec(spec.Name), s.keys.Status(spec.Name)
	guards := []guard{
		{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading},
		{key: specKey, want: was.SpecRev, refused: ErrSpecChanged},
		{key: statusKey, want: was.View.Revision, refused: ErrStatusReplaced},
	}
	value := encode(spec)
	rev, stands, err := s.guarded(ctx, spec.Name, guards, []clientv3.Op{
		putBytes(specKey, value),
		putBytes(statusKey, status.encode()),
	})
	now := was
	now.Spec, now.Broken = spec, nil
	switch {
	case err == nil:
		now.SpecRev, now.View = rev, View{Status: status, Revision: rev}
		return now, nil
	case stands != nil && stands[1] != nil && bytes.Equal(stands[1].Value, value): // an earlier try had landed
		now.SpecRev, now.View = stands[1].ModRevision, viewOf(spec.Name, stands[2])
		return now, nil
	default:
		return was, err
	}
}

// Definitions reads the named jobs. One that does not exist has the zero Definition. What it returns of a job
// belongs together: it stood at one revision.
func (s *Store) Definitions(ctx context.Context, jobs []string) (map[string]Definition, error) {
	defs := make(map[string]Definition, len(jobs))
	for chunk := range slices.Chunk(slices.Sorted(slices.Values(jobs)), maxTxnOps-2) {
		dense, err := s.readNeighbors(ctx, chunk, defs)
		if err != nil {
			return nil, err
		}
		if dense {
			continue
		}
		for part := range slices.Chunk(chunk, maxTxnOps/3) {
			if err := s.readScattered(ctx, part, defs); err != nil {
				return nil, err
			}
		}
	}
	return defs, nil
}

const (
	fewNeighbors = 4 // so many jobs are read key by key
	strangers    = 2 // how many times as many statuses as we want may lie among those that we do
)

// readNeighbors reads the controls and statuses of jobs that follow each other by name in two ranges, which costs etcd
// a third of what it costs to look up each. It reports false when there are too many others among them.
func (s *Store) readNeighbors(ctx context.Context, jobs []string, defs map[string]Definition) (bool, error) {
	if len(jobs) <= fewNeighbors {
		return false, nil
	}
	first, last := jobs[0], jobs[len(jobs)-1]
	limit := clientv3.WithLimit(int64(strangers * len(jobs)))
	ops := append(make([]clientv3.Op, 0, len(jobs)+2),
		clientv3.OpGet(s.keys.Control(first), clientv3.WithRange(s.keys.Control(last)+"\x00"), limit),
		clientv3.OpGet(s.keys.Status(first), clientv3.WithRange(s.keys.Status(last)+"\x00"), limit))
	for _, job := range jobs {
		ops = append(ops, clientv3.OpGet(s.keys.Spec(job)))
	}
	responses, err := s.readDefinition(ctx, ops)
	if err != nil {
		return false, err
	}
	controls, statuses := responses[0].GetResponseRange(), responses[1].GetResponseRange()
	if controls.GetMore() || statuses.GetMore() {
		return false, nil
	}
	control, status := byKey(controls.GetKvs()), byKey(statuses.GetKvs())
	for i, kv := range firstKVs(Result{Responses: responses[2:]}) {
		job := jobs[i]
		defs[job] = definitionOf(job, kv, control[s.keys.Control(job)], status[s.keys.Status(job)])
	}
	return true, nil
}

// readScattered reads three keys a job.
func (s *Store) readScattered(ctx context.Context, jobs []string, defs map[string]Definition) error {
	ops := make([]clientv3.Op, 0, 3*len(jobs))
	for _, job := range jobs {
		ops = append(ops, clientv3.OpGet(s.keys.Spec(job)), clientv3.OpGet(s.keys.Control(job)), clientv3.OpGet(s.keys.Status(job)))
	}
	responses, err := s.readDefinition(ctx, ops)
	if err != nil {
		return err
	}
	kvs := firstKVs(Result{Responses: responses})
	for i, job := range jobs {
		defs[job] = definitionOf(job, kvs[3*i], kvs[3*i+1], kvs[3*i+2])
	}
	return nil
}

// readDefinition reads in one transaction.
func (s *Store) readDefinition(ctx context.Context, ops []clientv3.Op) ([]*etcdserverpb.ResponseOp, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return resp.Responses, nil
}

func byKey(kvs []*mvccpb.KeyValue) map[string]*mvccpb.KeyValue {
	found := make(map[string]*mvccpb.KeyValue, len(kvs))
	for _, kv := range kvs {
		found[string(kv.Key)] = kv
	}
	return found
}

// definitionOf decodes the keys of a job; those that are not there are nil.
func definitionOf(job string, spec, control, status *mvccpb.KeyValue) (d Definition) {
	if spec != nil {
		d.SpecRev = spec.ModRevision
		d.Spec, d.Broken = decode[Spec]("spec of job "+job, spec.Value)
	}
	if control != nil {
		d.ControlRev = control.ModRevision
		var err error
		if d.Control, err = decode[Control]("control of job "+job, control.Value); err != nil && d.Broken == nil {
			d.Broken = err
		}
	}
	d.View = viewOf(job, status)
	if d.Broken == nil {
		d.Broken = d.View.Broken
	}
	return d
}

// Job reads one job. Its error is ErrNotFound when there is none of that name.
func (s *Store) Job(ctx context.Context, job string) (Definition, error) {
	if err := CheckJobName(job); err != nil {
		return Definition{}, err
	}
	defs, err := s.Definitions(ctx, []string{job})
	if err != nil {
		return Definition{}, err
	}
	if defs[job].SpecRev == 0 {
		return Definition{}, fmt.Errorf("job %q: %w", job, ErrNotFound)
	}
	return defs[job], nil
}

// JobNames are the names of every job that has a status, in order.
func (s *Store) JobNames(ctx context.Context) ([]string, error) {
	kvs, _, err := s.list(ctx, s.keys.Statuses(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	names := make([]string, len(kvs))
	for i, kv := range kvs {
		names[i] = s.keys.JobOfStatus(string(kv.Key))
	}
	return names, nil
}

// NewUID is a new job's creation id.
func NewUID(now time.Time) string {
	return fmt.Sprintf("%s-%s", now.UTC().Format(runIDLayout), RandomSuffix())
}
