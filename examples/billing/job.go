package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
)

const jobName = "charge"

// biller charges all accounts for a month.
type biller struct {
	db       *database
	instance string
	batch    int64         // accounts in one transaction
	pause    time.Duration // between two batches
}

func (b *biller) job(lockTTL time.Duration) cronrunner.Job {
	return cronrunner.Job{
		Name:     jobName,
		Schedule: "0 3 1 * *", // in the night to the first, for the month before
		Handler:  b.charge,
		LockTTL:  lockTTL,
		Overlap:  cronrunner.Overlap{Policy: cronrunner.Queue}, // who asks for a month meanwhile has to wait
		Recovery: cronrunner.Recovery{Max: 10},
		Retry:    cronrunner.Retry{MaxAttempts: 5, Initial: time.Second},
	}
}

// checkpoint is what etcd keeps for the next attempt.
type checkpoint struct {
	Account int64 `json:"account"` // the last one that was charged
}

// charge is the job's handler: it goes on where the last attempt has ended, batch by batch.
func (b *biller) charge(ctx context.Context, run *cronrunner.Run) error {
	period, err := periodOf(run.Args()["period"], run.ScheduledAt())
	if err != nil {
		return cronrunner.Permanent(err)
	}
	c := claim{
		period: period, run: run.ID(), attempt: run.Attempt(), token: run.FencingToken(), instance: b.instance,
	}
	var saved checkpoint
	if _, err := run.Restore(ctx, &saved); err != nil {
		return err
	}
	position, err := b.db.takeOver(ctx, c, saved.Account)
	if err != nil {
		return err
	}
	if position < saved.Account {
		return cronrunner.Permanent(fmt.Errorf("the database knows of charges up to account %d, but had confirmed those up to %d: "+
			"it has lost some; was it restored from a backup?", position, saved.Account))
	}
	done, total, err := b.db.howFar(ctx, position)
	if err != nil {
		return err
	}

	for {
		if ctx.Err() != nil { // the lock is lost, the time is over, somebody has canceled, or the service stops
			return context.Cause(ctx)
		}
		b.db.stops.reach(beforeBatch, position)
		last, charged, err := b.chargeBatch(ctx, c, position)
		if err != nil {
			return err
		}
		if charged == 0 {
			return nil
		}
		b.db.stops.reach(afterCommit, last)
		if err := run.Checkpoint(ctx, checkpoint{Account: last}); err != nil {
			return err
		}
		if err := b.db.acknowledged(ctx, c, last); err != nil {
			return err
		}
		b.db.stops.reach(afterCheckpoint, last)
		position, done = last, done+charged
		run.Progress(done, total, "charged for "+period)
		sleep(ctx, b.pause)
		b.db.stops.pace(ctx, position)
	}
}

// chargeBatch charges one batch. It does not end with the handler's context: a batch that has begun is
// committed or refused as a whole, and it is short.
func (b *biller) chargeBatch(ctx context.Context, c claim, position int64) (last, charged int64, err error) {
	ctx = context.WithoutCancel(ctx)
	last, charged, err = b.db.chargeBatch(ctx, c, position, b.batch)
	if errors.Is(err, errOldToken) {
		err = errors.Join(err, b.db.refused(ctx, c))
	}
	return last, charged, err
}

// periodOf is the month to charge for: the one that was asked for or, of a run by the schedule, the one before
// its scheduled time. When the attempt runs does not matter.
func periodOf(asked string, scheduledAt time.Time) (string, error) {
	if asked == "" {
		return time.Date(scheduledAt.Year(), scheduledAt.Month()-1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01"), nil
	}
	if _, err := time.Parse("2006-01", asked); err != nil {
		return "", fmt.Errorf("period %q: give a month, such as 2026-11", asked)
	}
	return asked, nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
