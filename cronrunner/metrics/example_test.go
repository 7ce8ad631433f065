package metrics_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// A service shows what its scheduler does in a registry of its own.
func Example() {
	cluster, err := etcdtest.Run() // yours is there already
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client, err := etcdtest.NewClient(cluster.Endpoints()...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, "v1.2.3")
	if err != nil {
		log.Fatal(err)
	}
	s, err := cronrunner.New(client, cronrunner.Config{Observer: m, CommitHook: m.Committed})
	if err != nil {
		log.Fatal(err)
	}
	m.WatchElection(func() bool { return s.Elector().Blocked() != "" })

	ctx, cancel := context.WithCancel(context.Background())
	err = s.Register(cronrunner.Job{
		Name: "report", Schedule: "@every 1s",
		Handler: func(context.Context, *cronrunner.Run) error { cancel(); return nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		log.Fatal(err)
	}

	families, err := registry.Gather() // what promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) serves
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "etcdcron_job_runs_total" {
			for _, series := range family.GetMetric() {
				fmt.Println(series.GetLabel()[1].GetValue(), series.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// failed 0
	// succeeded 1
}
