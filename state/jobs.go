package state

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// readersAtOnce is how many transactions read the specs of all jobs at once: etcd answers them on as many cores as
// it has, and we decode meanwhile.
const readersAtOnce = 4

// JobView is a job's name and its status.
type JobView struct {
	View

	Job string
}

// Views reads the status of every job that has one, by name. It is less than half of what Jobs reads.
func (s *Store) Views(ctx context.Context) ([]JobView, error) {
	kvs, _, err := s.list(ctx, s.keys.Statuses())
	if err != nil {
		return nil, err
	}
	views := make([]JobView, len(kvs))
	for i, kv := range kvs {
		job := s.keys.JobOfStatus(string(kv.Key))
		views[i] = JobView{Job: job, View: viewOf(job, kv)}
	}
	return views, nil
}

// Jobs reads every job that has a status, by name, all at one revision.
func (s *Store) Jobs(ctx context.Context) ([]Definition, error) {
	for range 3 {
		jobs, err := s.jobs(ctx)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return jobs, err
		}
	}
	return nil, errors.New("list jobs: compacted again and again while reading")
}

// jobs reads the statuses and the controls as ranges. The specs stand among the records, so they are read one by one.
func (s *Store) jobs(ctx context.Context) ([]Definition, error) {
	statuses, rev, err := s.list(ctx, s.keys.Statuses())
	if err != nil {
		return nil, err
	}
	controls, _, err := s.listAt(ctx, s.keys.Controls(), rev)
	if err != nil {
		return nil, err
	}
	control := byKey(controls)
	jobs := make([]Definition, len(statuses))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readersAtOnce)
	for first := 0; first < len(jobs); first += maxTxnOps {
		last := min(first+maxTxnOps, len(jobs))
		group.Go(func() error { return s.readSpecs(ctx, jobs[first:last], statuses[first:last], control, rev) })
	}
	return jobs, group.Wait()
}

// readSpecs reads the specs of jobs, at a revision, and makes definitions of them and what was read before.
func (s *Store) readSpecs(
	ctx context.Context, jobs []Definition, statuses []*mvccpb.KeyValue, control map[string]*mvccpb.KeyValue, rev int64,
) error {
	ops := make([]clientv3.Op, len(jobs))
	for i, kv := range statuses {
		ops[i] = clientv3.OpGet(s.keys.Spec(s.keys.JobOfStatus(string(kv.Key))), clientv3.WithRev(rev))
	}
	responses, err := s.readDefinition(ctx, ops)
	if err != nil {
		return err
	}
	for i, kv := range firstKVs(Result{Responses: responses}) {
		name := s.keys.JobOfStatus(string(statuses[i].Key))
		jobs[i] = definitionOf(name, kv, control[s.keys.Control(name)], statuses[i])
		jobs[i].Spec.Name = name // also when the spec is broken
	}
	return nil
}
