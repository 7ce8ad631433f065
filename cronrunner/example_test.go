package cronrunner_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// A service registers its jobs and runs the scheduler next to its other work. Every copy of the service
// does the same; one of them leads.
func Example() {
	client, stop := someEtcd() // yours: clientv3.New(clientv3.Config{Endpoints: …})
	defer stop()

	s, err := cronrunner.New(client, cronrunner.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // in a service: signal.NotifyContext
	err = s.Register(cronrunner.Job{
		Name:     "greet",
		Schedule: "* * * * * *", // each second; the first of six fields is the seconds
		Handler: func(_ context.Context, run *cronrunner.Run) error {
			fmt.Println("attempt", run.Attempt(), "of a run by", run.Trigger())
			cancel() // enough for an example
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(ctx); err != nil { // until ctx ends; then it lets running jobs finish
		log.Fatal(err)
	}
	// Output: attempt 1 of a run by schedule
}

// What ran is in etcd, for as long as its history is kept.
func ExampleScheduler_Store() {
	client, stop := someEtcd()
	defer stop()
	s, err := cronrunner.New(client, cronrunner.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = s.Register(cronrunner.Job{
		Name: "report", Schedule: "@every 1s",
		Handler: func(context.Context, *cronrunner.Run) error {
			cancel()
			return fmt.Errorf("no paper")
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		log.Fatal(err)
	}

	page, err := s.Store().History(context.Background(), "report", "", 10)
	if err != nil {
		log.Fatal(err)
	}
	newest := page.Runs[0]
	fmt.Println(newest.Status, newest.Error, newest.Attempt)
	// Output: failed no paper 1
}

// A definition is checked as a whole, and each fault names its field.
func ExampleScheduler_Register() {
	client, stop := someEtcd()
	defer stop()
	s, err := cronrunner.New(client, cronrunner.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = s.Register(cronrunner.Job{
		Name: "cleanup", Schedule: "*/90 * * * *", LockTTL: 5 * time.Second, Grace: 4 * time.Second,
		Handler: func(context.Context, *cronrunner.Run) error { return nil },
	})
	fmt.Println(err)
	// Output:
	// bad job "cleanup": schedule: "*/90 * * * *": minute field "*/90": step 90 is larger than the range 0-59, so it would mean "0"; for every 90 minutes use "@every 90m"
	// lock_ttl: 5s is too short for a grace of 4s: a job that loses its lock must have stopped before another instance can get it; use a lock_ttl of at least 13s, or a grace of at most 1.416s
}

// The times of a schedule, also across a change of the clocks: the local time that is skipped in spring
// runs at the jump.
func ExampleParseSchedule() {
	s, err := cronrunner.ParseSchedule("30 2 * * *", "America/New_York")
	if err != nil {
		log.Fatal(err)
	}
	zone, err := time.LoadLocation(s.Zone())
	if err != nil {
		log.Fatal(err)
	}
	at := time.Date(2026, 3, 7, 0, 0, 0, 0, zone)
	for range 3 {
		at = s.Next(at)
		fmt.Println(at.In(zone).Format(time.RFC3339))
	}
	// Output:
	// 2026-03-07T02:30:00-05:00
	// 2026-03-08T03:00:00-04:00
	// 2026-03-09T02:30:00-04:00
}

func someEtcd() (client *clientv3.Client, stop func()) {
	cluster, err := etcdtest.Run()
	if err != nil {
		log.Fatal(err)
	}
	client, err = etcdtest.NewClient(cluster.Endpoints()...)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { _ = client.Close(); _ = cluster.Close() }
}
