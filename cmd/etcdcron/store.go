package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/internal/term"
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

// job reads one job that must be there and readable.
func (c *cluster) job(ctx context.Context, name string) (state.Definition, error) {
	def, err := c.store.Job(ctx, name)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return def, c.noJob(ctx, name)
	case err != nil:
		return def, err
	}
	def.Spec.Name = name // also when it is broken
	return def, nil
}

// noJob is the error of a job that is not there, with the name that was probably meant.
func (c *cluster) noJob(ctx context.Context, name string) error {
	f := &failure{err: fmt.Errorf("there is no job %q under %s", name, c.keys.Root()), code: exitNotFound, try: "etcdcron jobs lists them"}
	all, err := c.store.Jobs(ctx)
	if err != nil {
		return f // the hint is not worth another error
	}
	names := make([]string, len(all))
	for i, def := range all {
		names[i] = def.Spec.Name
	}
	if closest := term.Closest(name, slices.Values(names)); closest != "" {
		f.try = "did you mean " + closest + "? " + f.try
	}
	return f
}
