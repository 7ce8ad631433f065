package state

import (
	"bytes"
	"context"
	"fmt"
	"time"

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
		clientv3.OpPut(specKey, string(value)),
		clientv3.OpPut(statusKey, string(encode(status))),
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

// Definitions reads the named jobs. One that does not exist has the zero Definition.
func (s *Store) Definitions(ctx context.Context, jobs []string) (map[string]Definition, error) {
	defs := make(map[string]Definition, len(jobs))
	for len(jobs) > 0 {
		n := min(len(jobs), maxTxnOps/3)
		if err := s.readDefinitions(ctx, jobs[:n], defs); err != nil {
			return nil, err
		}
		jobs = jobs[n:]
	}
	return defs, nil
}

// readDefinitions reads three keys a job in one transaction, so that they belong together.
func (s *Store) readDefinitions(ctx context.Context, jobs []string, defs map[string]Definition) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ops := make([]clientv3.Op, 0, 3*len(jobs))
	for _, job := range jobs {
		ops = append(ops, clientv3.OpGet(s.keys.Spec(job)), clientv3.OpGet(s.keys.Control(job)), clientv3.OpGet(s.keys.Status(job)))
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	kvs := firstKVs(Result{Responses: resp.Responses})
	for i, job := range jobs {
		var d Definition
		if kv := kvs[3*i]; kv != nil {
			d.SpecRev = kv.ModRevision
			d.Spec, d.Broken = decode[Spec]("spec of job "+job, kv.Value)
		}
		if kv := kvs[3*i+1]; kv != nil {
			d.ControlRev = kv.ModRevision
			var err error
			if d.Control, err = decode[Control]("control of job "+job, kv.Value); err != nil && d.Broken == nil {
				d.Broken = err
			}
		}
		d.View = viewOf(job, kvs[3*i+2])
		if d.Broken == nil {
			d.Broken = d.View.Broken
		}
		defs[job] = d
	}
	return nil
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

// Jobs reads every job that has a status, by name.
func (s *Store) Jobs(ctx context.Context) ([]Definition, error) {
	names, err := s.JobNames(ctx)
	if err != nil {
		return nil, err
	}
	defs, err := s.Definitions(ctx, names)
	if err != nil {
		return nil, err
	}
	jobs := make([]Definition, 0, len(names))
	for _, name := range names {
		d := defs[name]
		d.Spec.Name = name // also when the spec is broken
		jobs = append(jobs, d)
	}
	return jobs, nil
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
