package cronrunner

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Whoever is asked to hand over does so once, and the next leader is left alone.
func TestResignOnRequest(t *testing.T) {
	b := newBench(t)
	j := Job{Name: "a", Schedule: "0 0 1 1 *", Handler: quick}
	first := b.start(Config{InstanceID: "a"}, j)
	first.waitLeading()
	second := b.start(Config{InstanceID: "b"}, j)
	b.waitCandidates(2)
	info, err := first.Elector().Leader(t.Context())
	require.NoError(t, err)

	term := state.Term{Key: info.Key, Revision: info.Term}
	_, err = b.store.AskToResign(t.Context(), term, "ann", "the machine goes")
	require.NoError(t, err)
	first.waitFor(func(ev Event) bool {
		e, ok := ev.(Deposed)
		return ok && errors.Is(e.Cause, leader.ErrResigned)
	})
	second.waitLeading()
	b.requireNoRequests()
	now, err := second.Elector().Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, second.ID(), now.Instance)
	require.Greater(t, now.Term, info.Term)
	_, err = b.store.AskToResign(t.Context(), term, "ann", "")
	require.ErrorIs(t, err, state.ErrNotLeading, "that term is over")
}

// A request to resign that was left behind by a term that is over ends no other term.
func TestResignOfAnotherTerm(t *testing.T) {
	b := newBench(t)
	key := b.store.Keys().Resign(1)
	_, err := b.client.Put(t.Context(), key, `{"kind":"resign","term":1,"at":"2026-11-30T16:29:35Z"}`)
	require.NoError(t, err)
	i := b.start(Config{InstanceID: "a"}, Job{Name: "a", Schedule: "0 0 1 1 *", Handler: quick})
	i.waitLeading()
	require.Eventually(t, func() bool {
		left, err := b.store.Requests(t.Context())
		return err == nil && len(left) == 0
	}, patience, 5*time.Millisecond)
	h := newHeld(b, Overlap{})
	close(h.release)
	require.NoError(t, i.Register(h.Job))
	require.Equal(t, state.ByHand, h.trigger().Trigger, "it still leads")
	require.True(t, i.leads())
}

// faultyKV makes a fault of the first transaction that writes or deletes a key under a prefix.
type faultyKV struct {
	clientv3.KV

	prefix string
	fault  func(clientv3.Txn) (*clientv3.TxnResponse, error)
	made   atomic.Bool
}

func (kv *faultyKV) Txn(ctx context.Context) clientv3.Txn {
	return &faultyTxn{Txn: kv.KV.Txn(ctx), kv: kv}
}

type faultyTxn struct {
	clientv3.Txn

	kv    *faultyKV
	meant bool
}

func (t *faultyTxn) If(cmps ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cmps...); return t }
func (t *faultyTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *faultyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.meant = t.meant || !op.IsGet() && strings.HasPrefix(string(op.KeyBytes()), t.kv.prefix)
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.meant && t.kv.made.CompareAndSwap(false, true) {
		return t.kv.fault(t.Txn)
	}
	return t.Txn.Commit()
}

// A request that stands is not made again, and one that is gone is not heard of again: neither may be forgotten.
func TestResignWhenEtcdIsInTrouble(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(clientv3.Txn) (*clientv3.TxnResponse, error){
		"refused": func(clientv3.Txn) (*clientv3.TxnResponse, error) {
			return nil, rpctypes.ErrAuthOldRevision // somebody has changed a role
		},
		"answer lost": func(txn clientv3.Txn) (*clientv3.TxnResponse, error) {
			_, _ = txn.Commit()
			return nil, context.DeadlineExceeded
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			client := b.cluster.Client(t)
			kv := &faultyKV{KV: client.KV, prefix: b.store.Keys().Requests() + "resign/", fault: fault}
			client.KV = kv
			i := b.startOn(client, Config{InstanceID: "a"}, Job{Name: "a", Schedule: "0 0 1 1 *", Handler: quick})
			i.waitLeading()
			info, err := i.Elector().Leader(t.Context())
			require.NoError(t, err)
			_, err = b.store.AskToResign(t.Context(), state.Term{Key: info.Key, Revision: info.Term}, "ann", "")
			require.NoError(t, err)
			i.waitFor(func(ev Event) bool {
				e, ok := ev.(Deposed)
				return ok && e.Term == info.Term && errors.Is(e.Cause, leader.ErrResigned)
			})
			require.True(t, kv.made.Load())
			i.stop()
		})
	}
}
