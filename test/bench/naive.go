package main

import (
	"context"
	"encoding/json"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/etcdcron/etcdcron/state"
)

// naiveAtOnce is how many runs are under way at once; more make it slower. The others wait.
const naiveAtOnce = 64

// startNaive is what one writes first: a cron loop in each instance, and for each run a session, a mutex that only one
// instance gets, a record before the work and one after it.
func startNaive(ctx context.Context, b *bed) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	slots := make(chan struct{}, naiveAtOnce)
	stop, err := runCron(b, func(job string, due time.Time) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() { <-slots }()
		if err := naiveRun(ctx, b, job, due); err == nil {
			b.tally.finished()
		}
	})
	return func() { cancel(); stop() }, err
}

func naiveRun(ctx context.Context, b *bed, job string, due time.Time) error {
	session, err := concurrency.NewSession(b.client, concurrency.WithContext(ctx))
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "/naive/locks/"+job)
	if err := mutex.TryLock(ctx); err != nil {
		return err // another instance runs it
	}
	defer func() { _ = mutex.Unlock(ctx) }()

	run := state.Run{
		Job: job, ID: state.RunID(due), Trigger: state.BySchedule, ScheduledAt: due,
		Status: state.Running, Attempt: 1, StartedAt: time.Now().UTC(),
	}
	if err := putRun(ctx, b.client, &run); err != nil {
		return err
	}
	b.tally.started(due)
	run.Status, run.FinishedAt = state.Succeeded, time.Now().UTC()
	return putRun(ctx, b.client, &run)
}

func putRun(ctx context.Context, client *clientv3.Client, run *state.Run) error {
	value, err := json.Marshal(run)
	if err != nil {
		return err
	}
	_, err = client.Put(ctx, "/naive/runs/"+run.Job+"/"+run.ID, string(value))
	return err
}
