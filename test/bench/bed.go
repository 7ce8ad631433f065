package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// bed is what a measurement is made on: a new etcd in this process that writes through to the disk, and the books.
type bed struct {
	scenario

	contestant string
	seconds    int
	cpuProfile string

	cluster *etcdtest.Cluster
	client  *clientv3.Client // for looking, and for whoever needs just one
	tally   *tally
}

// quota is more than any measurement writes.
const quota = 8 << 30

func newBed(s scenario, contestant string, cfg config) (*bed, error) {
	cluster, err := etcdtest.Run(etcdtest.WithFsync(), etcdtest.WithElectionTimeout(time.Second), // as etcd's own default
		etcdtest.WithConfig(func(c *embed.Config) { c.QuotaBackendBytes = quota }))
	if err != nil {
		return nil, err
	}
	b := &bed{
		scenario: s, contestant: contestant, seconds: cfg.seconds, cpuProfile: cfg.cpuProfile,
		cluster: cluster, tally: &tally{},
	}
	if b.client, err = b.newClient(); err != nil {
		_ = cluster.Close()
		return nil, err
	}
	return b, nil
}

func (b *bed) newClient() (*clientv3.Client, error) {
	return etcdtest.NewClient(b.cluster.Endpoints()...)
}

func (b *bed) close() {
	_ = b.client.Close()
	_ = b.cluster.Close()
}

// sample is where everything that is counted stands at an instant.
type sample struct {
	at       time.Time
	own      time.Duration // CPU of this process
	machine  time.Duration // CPU of everybody
	finished int64
	notRun   int64
	revision int64
	bytes    int64 // of the database that are in use
}

func (b *bed) sample(ctx context.Context) (sample, error) {
	s := sample{at: time.Now(), own: ownCPU(), machine: machineCPU(), finished: b.tally.ended.Load(), notRun: b.tally.notRun.Load()}
	status, err := b.client.Status(ctx, b.cluster.Endpoints()[0])
	if err != nil {
		return sample{}, fmt.Errorf("etcd's status: %w", err)
	}
	s.revision, s.bytes = status.Header.Revision, status.DbSizeInUse
	return s, nil
}

// between measures from one instant to another, and writes what it cost.
func (b *bed) between(ctx context.Context, from, to time.Time, into *result) error {
	if err := sleepUntil(ctx, from); err != nil {
		return err
	}
	stopProfile, err := startProfile(b.cpuProfile)
	if err != nil {
		return err
	}
	before, err := b.sample(ctx)
	if err == nil {
		err = sleepUntil(ctx, to)
	}
	stopProfile()
	if err != nil {
		return err
	}
	after, err := b.sample(ctx)
	if err != nil {
		return err
	}
	into.cost(before, after)
	return nil
}

func startProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heapInUse is the heap after a collection.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
