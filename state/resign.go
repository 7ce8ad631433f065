package state

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// AskToResign asks for a term to end, so that the next candidate leads. The request is of that term alone: its key
// names it, it is made only while that term is held, and no other leader acts on it. A second one is as good as the
// first, and is not made. Errors: ErrNotLeading, which is of that term; ctx's when the outcome stays unknown.
func (s *Store) AskToResign(ctx context.Context, term Term, by, reason string) (Request, error) {
	r := Request{
		Kind: AskResign, Term: term.Revision, By: CutHead(by, MaxNote), Reason: CutHead(reason, MaxNote),
		At: time.Now().UTC().Truncate(time.Millisecond),
	}
	key := s.keys.Resign(term.Revision)
	held := guard{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading}
	res, err := s.settle(ctx, Mutation{
		If:   []clientv3.Cmp{held.cmp(), guard{key: key}.cmp()},
		Then: []clientv3.Op{clientv3.OpPut(key, string(encode(r)))},
		Else: []clientv3.Op{clientv3.OpGet(term.Key), clientv3.OpGet(key)},
	})
	if err != nil {
		return r, fmt.Errorf("resign term %d: %w", term.Revision, err)
	}
	if res.Succeeded {
		return r, nil
	}
	stands := firstKVs(res)
	if stands[1] != nil { // somebody has asked already, or an earlier try of ours, whose answer was lost, had landed
		if first, err := DecodeRequest(stands[1]); err == nil {
			return first.Request, nil
		}
	}
	return r, fmt.Errorf("term %d: %w", term.Revision, ErrNotLeading)
}
