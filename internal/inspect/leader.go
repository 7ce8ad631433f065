package inspect

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Leader reads who leads. Its error is a fault of kind NotLeading when nobody does.
func Leader(ctx context.Context, client *clientv3.Client, keys state.Keys) (leader.Info, error) {
	info, err := leader.Current(ctx, client, keys)
	if errors.Is(err, leader.ErrNoLeader) {
		err = &fault.Error{
			Kind: fault.NotLeading, Err: fmt.Errorf("nobody leads under %s", keys.Root()),
			Hint: "etcdcron serve -c FILE starts an instance; when one has just stopped, another leads within seconds",
		}
	}
	return info, err
}
