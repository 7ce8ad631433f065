package inspect

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Instance is one process that takes part, leading or not.
type Instance struct {
	state.Instance

	Leads bool `json:"leads"`
}

// Instances reads who takes part, by id. An instance's key goes with its lease, so one that is listed lived less than
// a TTL ago.
func Instances(ctx context.Context, client *clientv3.Client, store *state.Store) ([]Instance, error) {
	present, err := store.Instances(ctx)
	if err != nil {
		return nil, err
	}
	info, err := leader.Current(ctx, client, store.Keys())
	if err != nil && !errors.Is(err, leader.ErrNoLeader) {
		return nil, err
	}
	all := make([]Instance, len(present))
	for i, inst := range present {
		all[i] = Instance{Instance: inst, Leads: info.Instance != "" && inst.ID == info.Instance}
	}
	return all, nil
}
