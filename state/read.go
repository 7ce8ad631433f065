package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	maxTxnOps = 120 // etcd refuses more than 128 operations in a transaction
	pageSize  = 500 // keys a range reads at once
)

// list reads every key under prefix, in pages, all at one revision. Should that revision be compacted
// away in between, it starts over.
func (s *Store) list(ctx context.Context, prefix string, opts ...clientv3.OpOption) ([]*mvccpb.KeyValue, int64, error) {
	for range 3 {
		kvs, rev, err := s.listAt(ctx, prefix, 0, opts...)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return kvs, rev, err
		}
	}
	return nil, 0, fmt.Errorf("list %s: compacted again and again while reading", prefix)
}

// listAt is list at a revision, the newest when that is 0. It returns the revision, and ErrCompacted when that is
// compacted away.
func (s *Store) listAt(ctx context.Context, prefix string, rev int64, opts ...clientv3.OpOption) ([]*mvccpb.KeyValue, int64, error) {
	end := clientv3.GetPrefixRangeEnd(prefix)
	var kvs []*mvccpb.KeyValue
	for from := prefix; ; {
		resp, err := s.rangeOnce(ctx, from, end, pageSize, append(slices.Clip(opts), clientv3.WithRev(rev))...)
		if err != nil {
			return nil, 0, fmt.Errorf("list %s: %w", prefix, err)
		}
		if rev == 0 { // an answer always has etcd's own revision, whichever was asked for
			rev = resp.Header.Revision
		}
		kvs = append(kvs, resp.Kvs...)
		if !resp.More {
			return kvs, rev, nil
		}
		from = string(kvs[len(kvs)-1].Key) + "\x00"
	}
}

// rangeOnce reads at most limit keys of [from, end) in ascending order. No explicit sort: with one, etcd
// ignores the limit and reads everything.
func (s *Store) rangeOnce(ctx context.Context, from, end string, limit int64, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.client.Get(ctx, from, append(opts, clientv3.WithRange(end), clientv3.WithLimit(limit))...)
}

// firstKVs is what each Get of a transaction found; nil where it found nothing.
func firstKVs(res Result) []*mvccpb.KeyValue {
	kvs := make([]*mvccpb.KeyValue, len(res.Responses))
	for i, r := range res.Responses {
		if found := r.GetResponseRange().GetKvs(); len(found) > 0 {
			kvs[i] = found[0]
		}
	}
	return kvs
}

// Run reads the record of one run and its mod revision. Its error is ErrNotFound when there is none.
func (s *Store) Run(ctx context.Context, job, id string) (Run, int64, error) {
	kv, err := s.getOne(ctx, s.keys.Run(job, id))
	if err != nil {
		return Run{}, 0, fmt.Errorf("read run %s of job %s: %w", id, job, err)
	}
	if kv == nil {
		return Run{}, 0, fmt.Errorf("run %s of job %s: %w", id, job, ErrNotFound)
	}
	r, err := decodeRun(kv)
	return r, kv.ModRevision, err
}

// DecodeRun reads the value of a run's key.
func DecodeRun(kv *mvccpb.KeyValue) (Run, error) { return decodeRun(kv) }

// decodeRun decodes a record. The fencing token of an attempt is the revision of the write that claimed
// it, which that write could not know; while it runs, it is the record's own mod revision.
func decodeRun(kv *mvccpb.KeyValue) (Run, error) {
	r, err := decode[Run](string(kv.Key), kv.Value)
	if r.Status == Running && r.RetryAt.IsZero() { // between two attempts it has that of the last, which wrote it down
		r.FencingToken = kv.ModRevision
	}
	return r, err
}

// HeldLock is a lock as it stands: the value, the job, the key and its create revision, and whether it is of one
// run alone.
type HeldLock struct {
	Lock

	Job      string
	Key      string
	Shared   bool
	Revision int64
}

// Owned is what an owner of the lock would unlock it with.
func (l *HeldLock) Owned() Owned {
	return Owned{Run: Run{Job: l.Job, ID: l.Run}, Locked: l.Revision, Shared: l.Shared}
}

// Instances reads who takes part. A value that cannot be decoded is shown by its key alone.
func (s *Store) Instances(ctx context.Context) ([]Instance, error) {
	kvs, _, err := s.list(ctx, s.keys.Instances())
	if err != nil {
		return nil, err
	}
	all := make([]Instance, len(kvs))
	for i, kv := range kvs {
		if all[i], err = decode[Instance]("instance", kv.Value); err != nil {
			all[i] = Instance{ID: strings.TrimPrefix(string(kv.Key), s.keys.Instances())}
		}
	}
	return all, nil
}

// Present reports whether an instance's key is there: its process lived less than a TTL ago.
func (s *Store) Present(ctx context.Context, instance string) (bool, error) {
	kv, err := s.getOne(ctx, s.keys.Instance(instance))
	return kv != nil, err
}

// Announce puts the instance's key under a lease.
func (s *Store) Announce(ctx context.Context, inst Instance, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.client.Put(ctx, s.keys.Instance(inst.ID), string(encode(inst)), clientv3.WithLease(lease))
	return err
}

// RandomSuffix is five random letters and digits, for ids that must differ.
func RandomSuffix() string {
	return strings.ToLower(rand.Text()[:5])
}

// LockOf reads the lock that a run of a job is under: the job's, whichever run holds it, or its own. It is nil
// when there is neither.
func (s *Store) LockOf(ctx context.Context, job, run string) (*HeldLock, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	keys := []string{s.keys.Lock(job), s.keys.SharedLock(job, run)}
	resp, err := s.client.Txn(ctx).Then(clientv3.OpGet(keys[0]), clientv3.OpGet(keys[1])).Commit()
	if err != nil {
		return nil, fmt.Errorf("read lock of job %s: %w", job, err)
	}
	for i, kv := range firstKVs(Result{Responses: resp.Responses}) {
		if kv != nil {
			l, _ := decode[Lock]("lock", kv.Value) // whatever it says, it locks
			if i == 1 {
				l.Run = run
			}
			return &HeldLock{Lock: l, Job: job, Key: keys[i], Shared: i == 1, Revision: kv.CreateRevision}, nil
		}
	}
	return nil, nil //nolint:nilnil // it is not locked
}
