package state

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Parts of what there may be very much of, so that no reader has to hold it all. Each continues after a place that
// the one before has named, at whatever stands by then.

// JobsAfter are the names of up to limit jobs (1 to 1000) that come after a name, in order; after "" the first ones.
// next continues them; "" at the end.
func (s *Store) JobsAfter(ctx context.Context, after string, limit int) (names []string, next string, err error) {
	from := s.keys.Status(after)
	if after != "" {
		from += "\x00"
	}
	resp, err := s.rangeOnce(ctx, from, clientv3.GetPrefixRangeEnd(s.keys.Statuses()), int64(min(max(limit, 1), maxPage)), clientv3.WithKeysOnly())
	if err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	for _, kv := range resp.Kvs {
		names = append(names, s.keys.JobOfStatus(string(kv.Key)))
	}
	if resp.More {
		next = names[len(names)-1]
	}
	return names, next, nil
}

// RequestsAfter are up to limit requests (1 to 1000) that come after a place, in the order of Requests; after "" the
// first ones. next continues them; "" at the end. One that cannot be decoded is left out.
func (s *Store) RequestsAfter(ctx context.Context, after string, limit int) (some []Standing, next string, err error) {
	from := s.keys.Requests() + after
	if after != "" {
		from += "\x00"
	}
	resp, err := s.rangeOnce(ctx, from, clientv3.GetPrefixRangeEnd(s.keys.Requests()), int64(min(max(limit, 1), maxPage)))
	if err != nil {
		return nil, "", fmt.Errorf("list requests: %w", err)
	}
	for _, kv := range resp.Kvs {
		if r, err := DecodeRequest(kv); err == nil {
			some = append(some, r)
		}
	}
	if resp.More {
		next = string(resp.Kvs[len(resp.Kvs)-1].Key)[len(s.keys.Requests()):]
	}
	return some, next, nil
}

// LockHeld reads the lock that a run of a job holds itself; nil when it holds none.
func (s *Store) LockHeld(ctx context.Context, job, run string) (*Lock, error) {
	l, err := s.LockOf(ctx, job, run)
	if err != nil || l == nil || l.Run != run {
		return nil, err
	}
	return &l.Lock, nil
}

// Revision is etcd's revision now.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	resp, err := s.rangeOnce(ctx, s.keys.Root(), s.keys.Root()+"\x00", 1, clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return resp.Header.Revision, nil
}
