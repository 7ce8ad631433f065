package state

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// BenchmarkCommitPacking is what packing costs on our side: an etcd that answers after a millisecond, and takes
// whatever it is sent.
func BenchmarkCommitPacking(b *testing.B) {
	value := strings.Repeat("v", 400)
	for _, callers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			var txns, mutations, caller atomic.Int64
			g := &group{kv: yes{}, timeout: time.Minute, hook: func(_ time.Duration, n int, _ error) {
				txns.Add(1)
				mutations.Add(int64(n))
			}}
			b.ReportAllocs()
			b.SetParallelism(max(callers/2, 1)) // times GOMAXPROCS
			b.RunParallel(func(pb *testing.PB) {
				m := claimOf(fmt.Sprint("job-", caller.Add(1)), value)
				for pb.Next() {
					if res, err := g.Commit(b.Context(), m); err != nil || !res.Succeeded {
						b.Error(res, err)
						return
					}
				}
			})
			b.ReportMetric(float64(mutations.Load())/float64(txns.Load()), "mutations/txn")
		})
	}
}

// claimOf is a mutation of the size of a claim.
func claimOf(job, value string) Mutation {
	k := Keys{root: "/etcdcron/default/"}
	run := k.Run(job, RunID(time.Unix(0, 0)))
	m := Mutation{Job: job, Then: []clientv3.Op{
		clientv3.OpPut(run, value), clientv3.OpPut(k.Lock(job), value[:60], clientv3.WithLease(1)), clientv3.OpPut(k.Status(job), value),
	}}
	for _, key := range []string{k.Election(), run, k.Spec(job), k.Control(job), k.Lock(job), k.Status(job)} {
		m.If = append(m.If, clientv3.Compare(clientv3.ModRevision(key), "=", 0))
	}
	return m
}

// yes is a KV that takes every transaction.
type yes struct{ clientv3.KV }

func (yes) Txn(context.Context) clientv3.Txn { return &taken{} }

type taken struct{ ops int }

func (t *taken) If(...clientv3.Cmp) clientv3.Txn { return t }

func (t *taken) Then(ops ...clientv3.Op) clientv3.Txn { t.ops = len(ops); return t }

func (t *taken) Else(...clientv3.Op) clientv3.Txn { return t }

func (t *taken) Commit() (*clientv3.TxnResponse, error) {
	time.Sleep(time.Millisecond)
	answer := &clientv3.TxnResponse{Header: &etcdserverpb.ResponseHeader{}, Succeeded: true}
	for range t.ops {
		answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseTxn{
			ResponseTxn: &etcdserverpb.TxnResponse{Succeeded: true},
		}})
	}
	return answer, nil
}
