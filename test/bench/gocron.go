package main

import (
	"context"
	"runtime"
	"time"

	cron "github.com/go-co-op/gocron/v2"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// startGocron is gocron with a distributed locker: each instance has a scheduler of its own, and each run happens
// where its lock is got. Nothing is recorded.
func startGocron(ctx context.Context, b *bed) (func(), error) {
	session, err := concurrency.NewSession(b.client, concurrency.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	ledgers := make([]ledger, b.jobs)
	missed := func(job string) { ledgers[jobIndex(job)].pop() }
	scheduler, err := cron.NewScheduler(cron.WithLocation(time.UTC), cron.WithDistributedLocker(locker{session, missed}))
	if err != nil {
		return nil, err
	}
	err = b.each(func(i int, name, schedule string) error {
		task := cron.NewTask(func() {
			b.tally.started(ledgers[i].pop())
			b.tally.finished()
		})
		_, err := scheduler.NewJob(cron.CronJob(schedule, true), task, cron.WithName(name),
			cron.WithCronImplementation(notedCron{cron.NewDefaultCron(true), &ledgers[i]}))
		return err
	})
	if err != nil {
		return nil, err
	}
	scheduler.Start()
	return func() {
		_ = scheduler.Shutdown()
		_ = session.Close()
		scheduler = nil
		runtime.KeepAlive(ledgers)
	}, nil
}

// locker is what gocron's documentation asks for: an error means that another instance runs the job. One session is
// shared by all locks, as one that is made for each costs three times as much.
type locker struct {
	session *concurrency.Session
	missed  func(job string)
}

func (l locker) Lock(ctx context.Context, key string) (cron.Lock, error) {
	mutex := concurrency.NewMutex(l.session, "/gocron/"+key)
	if err := mutex.TryLock(ctx); err != nil {
		l.missed(key)
		return nil, err
	}
	return mutex, nil
}

// notedCron notes the times that the scheduler will call its job for: it skips those that have passed.
type notedCron struct {
	cron.Cron

	ledger *ledger
}

func (c notedCron) Next(last time.Time) time.Time {
	next := c.Cron.Next(last)
	if !next.Before(time.Now()) {
		c.ledger.push(next)
	}
	return next
}
