package main

import (
	"context"
	"runtime"
	"time"

	"github.com/robfig/cron/v3"
)

// startRobfig is a cron loop in one process: no etcd, no record, and nothing left when the process ends. It is how
// late Go alone is.
func startRobfig(_ context.Context, b *bed) (func(), error) {
	return runCron(b, func(_ string, due time.Time) {
		b.tally.started(due)
		b.tally.finished()
	})
}

var withSeconds = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// runCron runs the jobs of a bed with robfig/cron.
func runCron(b *bed, run func(job string, due time.Time)) (stop func(), err error) {
	loop := cron.New(cron.WithLocation(time.UTC))
	ledgers := make([]ledger, b.jobs)
	err = b.each(func(i int, name, schedule string) error {
		parsed, err := withSeconds.Parse(schedule)
		if err != nil {
			return err
		}
		loop.Schedule(notedSchedule{parsed, &ledgers[i]}, cron.FuncJob(func() { run(name, ledgers[i].pop()) }))
		return nil
	})
	if err != nil {
		return nil, err
	}
	loop.Start()
	return func() {
		loop.Stop()
		loop = nil
		runtime.KeepAlive(ledgers)
	}, nil
}

// notedSchedule notes the times that the loop will call its job for: each that it asks for, once and in order.
type notedSchedule struct {
	cron.Schedule

	ledger *ledger
}

func (s notedSchedule) Next(t time.Time) time.Time {
	next := s.Schedule.Next(t)
	s.ledger.push(next)
	return next
}
