// Package tally counts again, from a job's records alone, what its status says of them. Whatever shows a job can be
// held against it: the status, the metrics, the HTTP API, the commands.
package tally

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

const pageSize = 500

// Read reads all records of a job, at one revision and in the order in which they were last written.
func Read(ctx context.Context, kv clientv3.KV, keys state.Keys, job string) ([]state.Run, error) {
	var all []*mvccpb.KeyValue
	prefix, revision := keys.Runs(job), int64(0)
	for from := prefix; ; {
		resp, err := kv.Get(ctx, from,
			clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		revision = resp.Header.Revision
		all = append(all, resp.Kvs...)
		if !resp.More {
			break
		}
		from = string(all[len(all)-1].Key) + "\x00"
	}
	slices.SortFunc(all, func(a, b *mvccpb.KeyValue) int { return int(a.ModRevision - b.ModRevision) })
	runs := make([]state.Run, len(all))
	for i, kv := range all {
		if err := json.Unmarshal(kv.Value, &runs[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
	}
	return runs, nil
}

// Count is what the status of a job should say of these records, which must be all there are, in the order of Read.
// The cursor and when the job is due next are not in records, nor is which run began last.
func Count(runs []state.Run) state.JobStatus {
	var st state.JobStatus
	var took, ended int64
	for _, r := range runs {
		if r.Trigger.Scheduled() && (r.Attempt > 0 || r.Status == state.Pending) {
			st.ScheduledRunsTotal++
		}
		st.RetriedTotal += int64(r.Retries)
		st.RecoveredTotal += int64(r.Recoveries)
		switch r.Status {
		case state.Pending:
			st.Queue = append(st.Queue, r.ID)
		case state.Running:
			st.Live = append(st.Live, r.ID)
		case state.Skipped:
			st.SkippedTotal += r.Times()
			st.SkippedByReason = plus(st.SkippedByReason, &r)
		case state.Missed:
			st.MissedTotal += r.Times()
			st.MissedByReason = plus(st.MissedByReason, &r)
		case state.Canceled:
			if r.Attempt == 0 { // it has never begun, whatever it stood for
				st.CanceledTotal += r.Times()
				continue
			}
			st.CanceledTotal++
		case state.Succeeded:
			st.SucceededTotal++
			st.ConsecutiveFailures, st.LastSuccessAt = 0, r.FinishedAt
		case state.Failed:
			st.FailedTotal++
			st.ConsecutiveFailures++
		}
		switch r.Status { //nolint:exhaustive // these are of runs that ran
		case state.Succeeded, state.Failed:
			ended++
			took += r.DurationMS
			st.MaxDurationMS = max(st.MaxDurationMS, r.DurationMS)
			fallthrough
		case state.Canceled:
			st.LastStatus, st.LastFinishedAt, st.LastDurationMS = r.Status, r.FinishedAt, r.DurationMS
		}
	}
	st.Running, st.Pending = len(st.Live), len(st.Queue)
	if ended > 0 {
		st.MeanDurationMS = float64(took) / float64(ended)
	}
	return st
}

func plus(counts map[string]int64, r *state.Run) map[string]int64 {
	if counts == nil {
		counts = make(map[string]int64)
	}
	counts[r.Reason] += r.Times()
	return counts
}

// Differences says in which fields a status is not what the records of its job say; none when it is right.
func Differences(status state.JobStatus, runs []state.Run) []string {
	count := Count(runs)
	if math.Abs(count.MeanDurationMS-status.MeanDurationMS) < 0.001 { // the status goes on from its last value
		count.MeanDurationMS = status.MeanDurationMS
	}
	says, counted := countable(status), countable(count)
	var differences []string
	for i := range says.NumField() {
		a, b := says.Field(i).Interface(), counted.Field(i).Interface()
		if !reflect.DeepEqual(a, b) {
			differences = append(differences, fmt.Sprintf("%s: %v; by the records %v", says.Type().Field(i).Name, a, b))
		}
	}
	return differences
}

// countable is a status with nothing in it that Count does not know, and what has no order made the same.
func countable(st state.JobStatus) reflect.Value {
	st.UID, st.LastError, st.LastRunID, st.Alerting = "", "", "", nil
	st.Cursor, st.NextRunAt, st.LastScheduledAt, st.LastStartedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	st.Live, st.Queue = slices.Sorted(slices.Values(st.Live)), slices.Sorted(slices.Values(st.Queue))
	if len(st.SkippedByReason) == 0 {
		st.SkippedByReason = nil
	}
	if len(st.MissedByReason) == 0 {
		st.MissedByReason = nil
	}
	return reflect.ValueOf(st)
}
