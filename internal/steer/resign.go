package steer

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Resign asks the leader to hand over to the next instance. With a term, only the leader of that term is asked; 0 is
// whoever leads. It returns who was asked, and the request as it stands. Its error is a fault of kind NotLeading when
// nobody leads, or somebody else by now.
func Resign(ctx context.Context, client *clientv3.Client, store *state.Store, term int64, n Note) (leader.Info, state.Request, error) {
	info, err := inspect.Leader(ctx, client, store.Keys())
	if err != nil {
		return info, state.Request{}, err
	}
	if term != 0 && info.Term != term {
		return info, state.Request{}, notThat(term)
	}
	r, err := store.AskToResign(ctx, state.Term{Key: info.Key, Revision: info.Term}, n.By, n.Reason)
	switch {
	case errors.Is(err, state.ErrNotLeading):
		err = notThat(info.Term)
	case err != nil && ctx.Err() != nil:
		err = unknown(ctx, info.Instance+" was asked to resign", "etcdcron leader shows who leads")
	}
	return info, r, err
}

// notThat is the error of asking a term to end that is over.
func notThat(term int64) error {
	return &fault.Error{
		Kind: fault.NotLeading, Err: fmt.Errorf("the leader of term %d does not lead any more", term),
		Hint: "etcdcron leader shows who leads",
	}
}
