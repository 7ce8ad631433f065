package main

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// cluster is what the commands look into, and ask things of.
type cluster struct {
	client *clientv3.Client
	keys   state.Keys
	store  *state.Store
	o      *options
}

// connected calls use with a connection to etcd, and closes it.
func (o *options) connected(ctx context.Context, use func(ctx context.Context, c *cluster) error) error {
	keys, err := o.keys()
	if err != nil {
		return err
	}
	client, err := app.Connect(ctx, o.clientConfig())
	if err != nil {
		return err
	}
	defer client.Close()
	return use(ctx, &cluster{
		client: client, keys: keys, o: o,
		store: state.NewStore(client, keys, state.StoreConfig{Timeout: o.commandTimeout, Logger: o.logger()}),
	})
}

// leader is who leads.
func (c *cluster) leader(ctx context.Context) (leader.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.commandTimeout)
	defer cancel()
	return leader.Current(ctx, c.client, c.keys)
}

// leads reports whether anybody leads.
func (c *cluster) leads(ctx context.Context) (bool, error) {
	_, err := c.leader(ctx)
	if errors.Is(err, leader.ErrNoLeader) {
		return false, nil
	}
	return err == nil, err
}
