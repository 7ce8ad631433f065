package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	// warmUp is how long the jobs run before anything is measured.
	warmUp = 3 * time.Second
	// settleLimit is how long a backlog is waited for.
	settleLimit = time.Minute
	// calm is how long before a whole second is measured from and to: most have nothing to do then.
	calm = 300 * time.Millisecond
)

// start has a contestant run the jobs of a bed, and returns when it does. stop ends that, and lets go of all that the
// contestant has in memory.
type start func(ctx context.Context, b *bed) (stop func(), err error)

var contestants = map[string]start{
	naive:  startNaive,
	gocron: startGocron,
	robfig: startRobfig,
	ours:   startOurs,
}

// measureLoad measures jobs that are due all the time.
func measureLoad(ctx context.Context, b *bed, into *result) error {
	begin := contestants[b.contestant]
	if begin == nil {
		return errNotHere
	}
	stop, err := begin(ctx, b)
	if err != nil {
		return err
	}
	if err := b.underLoad(ctx, into, nil); err != nil {
		return err
	}
	if b.contestant == ours {
		into.Definition = definitionBytes
	}
	inUse := heapInUse()
	stop()
	into.HeapPerJob = (float64(inUse) - float64(heapInUse())) / float64(b.jobs)
	runtime.KeepAlive(stop) // and with it what is not the contestant's
	return nil
}

// underLoad measures what is delivered from now on. In the middle, half a second after a whole one, something may happen.
func (b *bed) underLoad(ctx context.Context, into *result, middle func()) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	from := time.Now().Add(time.Second + calm).Truncate(time.Second)
	length := time.Duration(b.seconds) * time.Second
	into.Expected = b.expected(from, b.seconds)
	b.tally.open(from, b.seconds, into.Expected)
	if middle != nil {
		at := from.Add((length / 2).Truncate(time.Second) + time.Second/2)
		defer time.AfterFunc(time.Until(at), middle).Stop()
	}
	if err := b.between(ctx, from.Add(-calm), from.Add(length-calm), into); err != nil {
		return err
	}
	if err := sleepUntil(ctx, from.Add(length)); err != nil {
		return err
	}
	delays := b.tally.close()
	into.Started = len(delays)
	into.Delivered = float64(len(delays)) / float64(max(into.Expected, 1))
	into.Delay = &delay{
		P50: milliseconds(percentile(delays, 0.5)),
		P99: milliseconds(percentile(delays, 0.99)),
		Max: milliseconds(percentile(delays, 1)),
	}
	return nil
}

// settle waits until the jobs have run for a while and, where many are spread over the time, until what fell due while
// they were defined is made up for.
func (b *bed) settle(ctx context.Context) error {
	limit := warmUp
	if b.kind == "spread" || b.kind == "takeover" {
		limit = settleLimit
	}
	end := time.Now().Add(limit)
	for {
		began := time.Now()
		if err := sleepUntil(ctx, began.Add(min(warmUp, time.Until(end)))); err != nil {
			return err
		}
		if !time.Now().Before(end) || !b.tally.lateSince(began) {
			return nil
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// each calls something for each job of the bed.
func (b *bed) each(do func(i int, name, schedule string) error) error {
	for i := range b.jobs {
		if err := do(i, jobName(i), b.schedule(i)); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
	}
	return nil
}
