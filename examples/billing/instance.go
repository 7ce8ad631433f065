package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/leader"
)

// namespace keeps this service's jobs apart from those of others on the same etcd.
const namespace = "billing"

type instanceConfig struct {
	name      string
	endpoints []string
	lockTTL   time.Duration
	batch     int64
	pause     time.Duration
}

// runInstance is one copy of the service, until ctx ends. What else the service does would run beside it.
func runInstance(ctx context.Context, db *database, cfg instanceConfig) error {
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	db.stops = stopsFromEnvironment(cfg.name)
	client, err := clientv3.New(clientv3.Config{Endpoints: cfg.endpoints, DialTimeout: 5 * time.Second, Logger: logger})
	if err != nil {
		return err
	}
	defer client.Close()
	scheduler, err := cronrunner.New(client, cronrunner.Config{
		Namespace: namespace, InstanceID: cfg.name, LeaderTTL: min(cfg.lockTTL, leader.DefaultTTL), Logger: logger,
	})
	if err != nil {
		return err
	}
	b := &biller{db: db, instance: cfg.name, batch: cfg.batch, pause: cfg.pause}
	if err := scheduler.Register(b.job(cfg.lockTTL)); err != nil {
		return err
	}
	return scheduler.Run(ctx)
}
