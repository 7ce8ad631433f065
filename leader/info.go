package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// Info is who leads. It is for people and metrics; it never decides what may be written.
type Info struct {
	Instance  string    `json:"instance"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Version   string    `json:"version,omitempty"`
	Address   string    `json:"address,omitempty"`
	Term      int64     `json:"term"`
	Key       string    `json:"-"` // the election key; with Term, what a write that is about this term compares
	ElectedAt time.Time `json:"elected_at,omitzero"`
}

// encodeInfo is the value of an election key. The term is not in it: it is the key's create revision.
func encodeInfo(self state.Instance, electedAt time.Time) string {
	b, err := json.Marshal(struct {
		state.Instance
		ElectedAt time.Time `json:"elected_at,omitzero"`
	}{self, electedAt})
	if err != nil {
		panic(fmt.Sprintf("leader: %v", err)) // strings, numbers and times only
	}
	return string(b)
}

// Leader reads who leads. Its error is ErrNoLeader when nobody does.
func (e *Elector) Leader(ctx context.Context) (Info, error) {
	return Current(ctx, e.client, e.cfg.Keys)
}

// Current reads who leads in the namespace of keys, without an elector. Its error is ErrNoLeader when
// nobody does.
func Current(ctx context.Context, client *clientv3.Client, keys state.Keys) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := client.Get(ctx, keys.Candidates(), clientv3.WithFirstCreate()...)
	if err != nil {
		return Info{}, fmt.Errorf("read the leader: %w", err)
	}
	if len(resp.Kvs) == 0 {
		return Info{}, ErrNoLeader
	}
	kv := resp.Kvs[0]
	var info Info
	if err := json.Unmarshal(kv.Value, &info); err != nil {
		info = Info{Instance: string(kv.Key)} // put there by something else; name it all the same
	}
	info.Term, info.Key = kv.CreateRevision, string(kv.Key)
	return info, nil
}

// Observe yields who leads, now and after each change, until ctx ends or the loop is left. While nobody
// leads it yields ErrNoLeader; other errors are passing ones, and it goes on after them.
func (e *Elector) Observe(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var last Info
		var lastErr error
		first := true
		look := func() {
			info, err := e.Leader(ctx)
			if ctx.Err() != nil || !first && info == last && errors.Is(err, lastErr) {
				return
			}
			first, last, lastErr = false, info, err
			if !yield(info, err) {
				cancel()
			}
		}
		_ = e.store.Follow(ctx, e.cfg.Keys.Candidates(), state.Events{
			List:  func([]*mvccpb.KeyValue) { look() },
			Event: func(*clientv3.Event) { look() },
		})
	}
}
