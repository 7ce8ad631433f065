package main

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// ourMaxConcurrent lets a burst begin at once. All else is at its default.
const ourMaxConcurrent = 100_000

// definitionBytes is what a job's definition takes without the scheduler: the struct and its name.
var definitionBytes = int(reflect.TypeFor[cronrunner.Job]().Size()) + len(jobName(0))

// instance is one instance of etcdcron, with a client of its own, and the times of what it was seen to do.
type instance struct {
	bed       *bed
	client    *clientv3.Client
	scheduler *cronrunner.Scheduler

	elected, deposed, firstRun, loaded moment

	seen   []atomic.Bool // by job; until all are loaded
	unseen atomic.Int64

	unblock chan struct{}
	cancel  context.CancelFunc
	done    chan struct{}
}

// moment is when something was first seen.
type moment struct {
	once sync.Once
	at   time.Time
	seen chan struct{}
}

func (m *moment) now() { m.once.Do(func() { m.at = time.Now(); close(m.seen) }) }

func (m *moment) wait(ctx context.Context) error {
	select {
	case <-m.seen:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startOurs is etcdcron as a library, as its documentation has it.
func startOurs(ctx context.Context, b *bed) (func(), error) {
	i, err := b.startInstance(ctx)
	if err != nil {
		return nil, err
	}
	return func() { i.stop(); i = nil }, nil
}

// startInstance starts an instance with the jobs of the bed, and waits until it has loaded them all, as the leader.
func (b *bed) startInstance(ctx context.Context) (*instance, error) {
	i, err := b.newInstance()
	if err != nil {
		return nil, err
	}
	i.start(ctx)
	return i, i.loaded.wait(ctx)
}

func (b *bed) newInstance() (i *instance, err error) {
	i = &instance{bed: b, unblock: make(chan struct{}), done: make(chan struct{})}
	for _, m := range []*moment{&i.elected, &i.deposed, &i.firstRun, &i.loaded} {
		m.seen = make(chan struct{})
	}
	i.seen = make([]atomic.Bool, b.jobs)
	i.unseen.Store(int64(b.jobs))
	if i.client, err = b.newClient(); err != nil {
		return nil, err
	}
	i.scheduler, err = cronrunner.New(i.client, cronrunner.Config{MaxConcurrent: ourMaxConcurrent, Observer: i})
	if err != nil {
		return nil, err
	}
	err = b.each(func(_ int, name, schedule string) error {
		return i.scheduler.Register(cronrunner.Job{Name: name, Schedule: schedule, Handler: i.handle})
	})
	if err == nil && b.kind == "blocked" {
		err = i.scheduler.Register(cronrunner.Job{Name: "blocked", Schedule: "* * * * * *", Handler: i.block})
	}
	return i, err
}

func (i *instance) handle(_ context.Context, run *cronrunner.Run) error {
	i.bed.tally.started(run.ScheduledAt())
	i.firstRun.now()
	return nil
}

// block is the handler of somebody else's job that does not end before the measurement does.
func (i *instance) block(context.Context, *cronrunner.Run) error {
	<-i.unblock
	return nil
}

// Observe implements cronrunner.Observer.
func (i *instance) Observe(event cronrunner.Event) {
	switch e := event.(type) {
	case cronrunner.Recorded:
		if e.Run.Status == state.Succeeded {
			i.bed.tally.finished()
		} else {
			i.bed.tally.notRun.Add(1)
		}
	case cronrunner.Planned: // of a job that was loaded, or advanced
		if i.unseen.Load() == 0 {
			return
		}
		if n := jobIndex(e.Job); n >= 0 && !i.seen[n].Swap(true) && i.unseen.Add(-1) == 0 {
			i.loaded.now()
		}
	case cronrunner.Elected:
		i.elected.now()
	case cronrunner.Deposed:
		i.deposed.now()
	}
}

func (i *instance) start(ctx context.Context) {
	ctx, i.cancel = context.WithCancel(ctx)
	go func() {
		defer close(i.done)
		_ = i.scheduler.Run(ctx) // nil, after a shutdown
	}()
}

// stop shuts the instance down as a deployment does.
func (i *instance) stop() {
	i.cancel()
	close(i.unblock)
	<-i.done
	_ = i.client.Close()
	i.scheduler = nil
}
