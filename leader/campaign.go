package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// seat is a won election: the term, and the grant that its key is attached to.
type seat struct {
	term  Term
	lease *state.Lease
	grant *state.Grant
}

// campaign returns once our key is the first and has been confirmed. Whenever it fails, the lease is
// dropped, and with it the candidate key.
func (e *Elector) campaign(ctx context.Context, lease *state.Lease) (seat, error) {
	grant, err := lease.Acquire(ctx, e.margin)
	if err != nil {
		return seat{}, err
	}
	round, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	helpers.Go(func() { // a candidate whose lease is gone must not wait on
		select {
		case <-grant.Gone():
			cancel(state.ErrLeaseLost)
		case <-round.Done():
		}
	})
	helpers.Go(func() { e.watchBlockers(round) })

	term, err := e.win(round, grant)
	if err != nil {
		grant.Drop()
		if cause := context.Cause(round); cause != nil {
			err = cause
		}
		return seat{}, fmt.Errorf("campaign: %w", err)
	}
	return seat{term: term, lease: lease, grant: grant}, nil
}

// win waits for our turn, and then confirms it with a transaction that compares the create revision of
// our key: Campaign returns nil also when our lease has died meanwhile and there is no such key.
func (e *Elector) win(ctx context.Context, grant *state.Grant) (Term, error) {
	session, err := concurrency.NewSession(electionClient(ctx, e.client), concurrency.WithLease(grant.ID))
	if err != nil {
		return Term{}, err
	}
	defer session.Orphan() // the lease stays: it is kept by state.Lease
	election := concurrency.NewElection(session, e.cfg.Keys.Election())
	if err := election.Campaign(ctx, encodeInfo(e.cfg.Self, time.Time{})); err != nil {
		return Term{}, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := election.Proclaim(ctx, encodeInfo(e.cfg.Self, now)); err != nil {
		return Term{}, fmt.Errorf("confirm: %w", err)
	}
	return Term{
		Term:      state.Term{Key: election.Key(), Revision: election.Rev()},
		ElectedAt: now,
		heart:     newHeart(),
	}, nil
}

// watchBlockers looks, while we wait, for election keys without a lease. They never go by themselves,
// and every candidate waits behind them.
func (e *Elector) watchBlockers(ctx context.Context) {
	tick := time.NewTicker(2 * e.cfg.TTL)
	defer tick.Stop()
	defer e.blocked.Store(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		resp, err := e.client.Get(callCtx, e.cfg.Keys.Candidates(), clientv3.WithPrefix(), clientv3.WithLimit(100))
		cancel()
		if err != nil {
			continue // the campaign itself will say so
		}
		var blocker *string
		for _, kv := range resp.Kvs {
			if kv.Lease != 0 {
				continue
			}
			key := string(kv.Key)
			blocker = &key
			e.log.Error("an election key without a lease blocks every candidate after it: it was restored from a backup "+
				"or put there by a tool, and will not go by itself; delete it", zap.String("key", key))
			break
		}
		e.blocked.Store(blocker)
	}
}

// electionClient is what the concurrency package gets to work with: every call has a deadline, also
// those that it makes with the client's own context when its caller has gone; and nothing but
// [state.Lease] renews the lease.
func electionClient(ctx context.Context, client *clientv3.Client) *clientv3.Client {
	c := clientv3.NewCtxClient(context.WithoutCancel(ctx), clientv3.WithZapLogger(client.GetLogger()))
	c.KV = boundedKV{client.KV}
	c.Watcher = client.Watcher
	c.Lease = keptElsewhere{client.Lease}
	return c
}

// boundedKV gives a deadline to those calls that concurrency.Election makes.
type boundedKV struct{ clientv3.KV }

func (kv boundedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return kv.KV.Get(ctx, key, opts...)
}

func (kv boundedKV) Txn(ctx context.Context) clientv3.Txn {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	return &boundedTxn{kv.KV.Txn(ctx), cancel}
}

type boundedTxn struct {
	clientv3.Txn
	cancel context.CancelFunc
}

func (t *boundedTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *boundedTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *boundedTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *boundedTxn) Commit() (*clientv3.TxnResponse, error) {
	defer t.cancel()
	return t.Txn.Commit()
}

// keptElsewhere keeps a session from renewing the lease by its own stream.
type keptElsewhere struct{ clientv3.Lease }

func (keptElsewhere) KeepAlive(ctx context.Context, _ clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	silent := make(chan *clientv3.LeaseKeepAliveResponse)
	context.AfterFunc(ctx, func() { close(silent) })
	return silent, nil
}
