// Package size fills an etcd with as many jobs and records as a large installation has, and measures there how long
// the command takes to look at them.
package size

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcdcron/etcdcron/state"
)

// How the records are written: so many in a transaction, so many transactions at once.
const (
	perTxn = 100
	atOnce = 8
)

// Amount is how much there is.
type Amount struct {
	Jobs    int
	Records int // of each job, one a minute
}

// Name is the name of a job.
func Name(i int) string { return fmt.Sprintf("job-%05d", i) }

// Seed writes jobs that ran every minute until now, each with a definition, a status and its records.
func Seed(ctx context.Context, client *clientv3.Client, keys state.Keys, n Amount, now time.Time) error {
	now = now.UTC().Truncate(time.Minute)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n.Jobs {
		group.Go(func() error { return seedJob(ctx, client, keys, Name(i), n.Records, now) })
	}
	return group.Wait()
}

func seedJob(ctx context.Context, client *clientv3.Client, keys state.Keys, job string, records int, now time.Time) error {
	first := now.Add(-time.Duration(records-1) * time.Minute)
	spec := state.Spec{
		Name: job, UID: "u-" + job, Hash: "0123456789abcdef", Source: "jobs.yaml", Schedule: "* * * * *", TimeZone: "UTC",
		Description: "one of many", Target: "/opt/work/run --all", Overlap: "skip", CatchUp: "latest", Window: state.Duration(24 * time.Hour),
		Recovery: "resume", Recoveries: 3, Timeout: state.Duration(time.Hour), LockTTL: state.Duration(15 * time.Second),
		Grace: state.Duration(4 * time.Second), CreatedAt: first.Add(-time.Hour), UpdatedAt: first.Add(-time.Hour),
	}
	st := state.JobStatus{UID: spec.UID, Cursor: first.Add(-time.Minute)}
	ops := make([]clientv3.Op, 0, perTxn)
	flush := func(more ...clientv3.Op) error {
		_, err := client.Txn(ctx).Then(append(ops, more...)...).Commit()
		ops = ops[:0]
		return err
	}
	for i := range records {
		at := first.Add(time.Duration(i) * time.Minute)
		r := state.Run{
			Job: job, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Running, Attempt: 1,
			StartedAt: at.Add(3 * time.Millisecond), LatenessMS: 3,
		}
		st = st.Started(&r)
		r.Status, r.FinishedAt, r.DurationMS, r.Output = state.Succeeded, at.Add(1200*time.Millisecond), 1197, "did 100 of 100\n"
		r.TimeoutMS, r.Instance, r.Term, r.FencingToken = 3_600_000, "host-1-abcde", 7, int64(1000+i)
		if i%50 == 49 {
			r.Status, r.Error = state.Failed, "exit status 1"
		}
		st = st.Finished(&r)
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if ops = append(ops, clientv3.OpPut(keys.Run(job, r.ID), string(value))); len(ops) == perTxn {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	st.NextRunAt = now.Add(time.Minute)
	definition, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	status, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return flush(clientv3.OpPut(keys.Spec(job), string(definition)), clientv3.OpPut(keys.Status(job), string(status)))
}
