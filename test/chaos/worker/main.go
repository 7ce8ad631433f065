// Command worker is a process of the chaos tests: an instance that uses the library, or the command of a job.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/test/chaos/workload"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == "instance":
		return instance(ctx)
	case len(args) == 1 && args[0] == "run":
		return command(ctx)
	default:
		return errors.New("usage: worker instance|run")
	}
}

// place is what the test has told the process by its environment.
func place(name string) (*workload.Place, error) {
	p := &workload.Place{Instance: os.Getenv(workload.InstanceVariable), Dir: os.Getenv(workload.DirVariable)}
	var err error
	p.History, err = workload.OpenHistory(p.Dir, name+"-"+p.Instance)
	return p, err
}

func endOfTimes() (time.Time, error) {
	return time.Parse(time.RFC3339, os.Getenv(workload.EndVariable))
}

// instance is an instance that uses the library, until ctx ends.
func instance(ctx context.Context) error {
	p, err := place("code")
	if err != nil {
		return err
	}
	defer p.History.Close()
	defer p.History.Watch(context.Background(), p.Instance)()
	end, err := endOfTimes()
	if err != nil {
		return err
	}
	burst, err := strconv.Atoi(os.Getenv(workload.BurstVariable))
	if err != nil {
		return err
	}
	ttl, err := time.ParseDuration(os.Getenv(workload.TTLVariable))
	if err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(os.Getenv(workload.EndpointsVariable), ","), DialTimeout: 2 * time.Second,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: 2 * time.Second,
		})},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	log, err := zap.NewDevelopment()
	if err != nil {
		return err
	}
	clock := newClock(ctx, os.Getenv(workload.ClockVariable))
	s, err := cronrunner.New(client, cronrunner.Config{
		Namespace: workload.CodeNamespace, InstanceID: p.Instance, LeaderTTL: ttl, DrainTimeout: workload.DrainTimeout,
		Now: clock.now, Logger: log,
	})
	if err != nil {
		return err
	}
	for _, j := range workload.Code(end, os.Getenv(workload.JobsVariable), burst) {
		j.Handler = func(ctx context.Context, run *cronrunner.Run) error { return p.Do(ctx, j.Work, ofLibrary{run}) }
		if err := s.Register(j.Job); err != nil {
			return err
		}
	}
	return s.Run(ctx)
}

// ofLibrary is an attempt in a process with the library.
type ofLibrary struct{ *cronrunner.Run }

func (r ofLibrary) Restored(ctx context.Context) (int64, error) {
	for {
		var value int64
		_, err := r.Restore(ctx, &value)
		if err == nil || ctx.Err() != nil {
			return value, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r ofLibrary) Save(ctx context.Context, value int64) error { return r.Checkpoint(ctx, value) }

// clock is the wall clock, which the test sets by way of a file with a duration in it.
type clock struct{ offset atomic.Int64 }

func newClock(ctx context.Context, path string) *clock {
	c := &clock{}
	read := func() {
		text, err := os.ReadFile(path)
		if err != nil {
			return
		}
		if d, err := time.ParseDuration(strings.TrimSpace(string(text))); err == nil {
			c.offset.Store(int64(d))
		}
	}
	read()
	go func() { // for as long as the process lives
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				read()
			case <-ctx.Done():
				return
			}
		}
	}()
	return c
}

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }
