package cronrunner

import (
	"cmp"
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// asks is what people have asked of one job and that was not acted on yet, as the leader has heard of it.
// Hearing of it late, or twice, does no harm: each act compares the request's key.
type asks struct {
	runs      []state.Standing // triggers and retries, in the order in which they were asked for
	backfills []state.Standing
	cancels   []state.Standing
}

func (a *asks) of(kind state.RequestKind) *[]state.Standing {
	switch kind {
	case state.AskBackfill:
		return &a.backfills
	case state.AskCancel:
		return &a.cancels
	case state.AskTrigger, state.AskRetry, state.AskResign:
	}
	return &a.runs
}

// put takes in a request, or, if one stands already, what is left of it.
func (a *asks) put(r state.Standing, stands bool) {
	list := a.of(r.Kind)
	if stands {
		if i := slices.IndexFunc(*list, r.Same); i >= 0 {
			(*list)[i] = r
			return
		}
	}
	*list = append(*list, r)
}

// remove takes one out, mostly the first: there may be very many.
func (a *asks) remove(r state.Standing) {
	list := a.of(r.Kind)
	if len(*list) > 0 && r.Same((*list)[0]) {
		*list = (*list)[1:]
		return
	}
	*list = slices.DeleteFunc(*list, r.Same)
}

// followRequests tells the loop what people ask for, until ctx ends.
func (t *term) followRequests(ctx context.Context) {
	_ = t.s.store.Follow(ctx, t.s.store.Keys().Requests(), state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
			t.tell(func(t *term) error {
				t.asks, t.standing, t.refusals = make(map[string]*asks), make(map[string]state.Standing), nil
				for _, kv := range kvs {
					t.asked(kv)
				}
				return nil
			})
		},
		Event: func(ev *clientv3.Event) {
			t.tell(func(t *term) error {
				if ev.Type == mvccpb.Event_DELETE {
					gone := t.standing[string(ev.Kv.Key)]
					gone.Revision = ev.Kv.ModRevision
					t.acted(gone, nil, 0)
				} else {
					t.asked(ev.Kv)
				}
				return nil
			})
		},
	})
}

// asked takes in a request as it stands.
func (t *term) asked(kv *mvccpb.KeyValue) {
	r, err := state.DecodeRequest(kv)
	if err != nil {
		t.log.Warn("a request cannot be read; it is left alone", zap.ByteString("key", kv.Key), zap.Error(err))
		return
	}
	was, stands := t.standing[r.Key]
	if was.Revision >= r.Revision {
		return // our own act was faster
	}
	t.standing[r.Key] = r
	if r.Kind == state.AskResign {
		t.askedToResign(r)
		return
	}
	t.route(r, stands)
}

// route hands a request to its job, if that is among ours.
func (t *term) route(r state.Standing, stands bool) {
	js := t.jobs[r.Job]
	if js == nil || js.job == nil {
		t.refusals = append(t.refusals, r)
		t.refuseNext()
		return
	}
	if t.asks[r.Job] == nil {
		t.asks[r.Job] = &asks{}
	}
	t.asks[r.Job].put(r, stands)
	t.enqueue(js)
}

// acted forgets a request that was acted on, as it stood then, but for what is left of it. One that stands anew
// since then is not forgotten.
func (t *term) acted(r state.Standing, rest *state.Request, rev int64) {
	if t.standing[r.Key].Revision > r.Revision {
		return
	}
	delete(t.standing, r.Key)
	a := t.asks[r.Job]
	if a == nil {
		return
	}
	if rest != nil {
		r.Request, r.Revision = *rest, rev
		t.standing[r.Key] = r
		a.put(r, true)
		return
	}
	a.remove(r)
	if len(a.runs)+len(a.backfills)+len(a.cancels) == 0 {
		delete(t.asks, r.Job)
	}
}
