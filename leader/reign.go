package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

const resignTries = 3

var (
	errDoubt   = fmt.Errorf("%w: the lease could not be renewed in time", ErrLost)
	errDeleted = fmt.Errorf("%w: the election key was deleted", ErrLost)
)

// reign leads until the term is over for good, through any number of doubts. It returns lead's error
// when lead failed by itself.
func (e *Elector) reign(ctx context.Context, s seat, lead func(context.Context, Term) error) error {
	for {
		cause, err := e.rule(ctx, s, lead)
		switch {
		case !errors.Is(cause, errDoubt):
			return err
		case !e.doubt(ctx, s):
			return nil
		}
	}
}

// rule runs lead for as long as the lease is surely held and the key is ours. It returns why that
// ended, once lead has returned.
func (e *Elector) rule(ctx context.Context, s seat, lead func(context.Context, Term) error) (cause, err error) {
	termCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	held, release := s.grant.Hold(ctx, e.margin)
	defer release()
	defer context.AfterFunc(held, func() {
		if errors.Is(context.Cause(held), state.ErrLeaseLost) {
			end(errDoubt)
		} else {
			end(ErrResigned)
		}
	})()

	var watchers sync.WaitGroup
	watchCtx, stopWatching := context.WithCancel(ctx)
	defer watchers.Wait()
	defer stopWatching()
	watchers.Go(func() { e.watchKey(watchCtx, s, func() { end(errDeleted) }) })
	s.term.Beat()
	watchers.Go(func() { s.term.heart.watch(watchCtx, e.cfg.TTL, func() { end(ErrStalled) }) })

	t := &tenure{term: s.term, end: end, over: make(chan struct{})}
	e.current.Store(t)
	e.log.Info("leading", zap.Int64("term", s.term.Revision))
	returned := make(chan error, 1)
	watchers.Go(func() {
		err := lead(termCtx, s.term)
		if termCtx.Err() != nil {
			err = nil // told to stop, and did
		}
		end(ErrResigned)
		returned <- err
	})

	<-termCtx.Done()
	cause = context.Cause(termCtx)
	e.current.Store(nil)
	if !errors.Is(cause, ErrLost) {
		e.giveUp(ctx, s) // before anything is logged: a log that stands still must not keep the key
	}
	close(t.over)
	level := zap.InfoLevel
	if !errors.Is(cause, ErrResigned) {
		level = zap.WarnLevel
	}
	e.log.Log(level, "not leading any more", zap.Int64("term", s.term.Revision), zap.NamedError("cause", cause))
	return cause, <-returned
}

// watchKey calls deleted once when our key is not there any more. A watch that is lost is opened again
// from what stands.
func (e *Elector) watchKey(ctx context.Context, s seat, deleted func()) {
	gone := false
	check := func(kv *mvccpb.KeyValue) {
		if kv == nil || kv.CreateRevision != s.term.Revision {
			gone = true
		}
	}
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = e.store.Follow(watchCtx, s.term.Key, state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			var ours *mvccpb.KeyValue
			if len(kvs) > 0 {
				ours = kvs[0]
			}
			if check(ours); gone {
				cancel()
			}
		},
		Event: func(ev *clientv3.Event) {
			switch {
			case string(ev.Kv.Key) != s.term.Key: // Follow follows a prefix
			case ev.Type == mvccpb.Event_DELETE:
				gone = true
			default:
				check(ev.Kv)
			}
			if gone {
				cancel()
			}
		},
	})
	if gone {
		deleted()
		s.lease.Nudge() // the lease may have gone with it
	}
}

// doubt waits until the lease answers again, and reports whether the same term may go on.
func (e *Elector) doubt(ctx context.Context, s seat) bool {
	if !s.grant.Await(ctx, e.margin) {
		return false
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := e.client.Get(callCtx, s.term.Key)
	if err != nil {
		s.grant.Drop() // rather than campaign behind a key of our own
		return false
	}
	return len(resp.Kvs) == 1 && resp.Kvs[0].CreateRevision == s.term.Revision
}

// giveUp deletes our key, so that the next candidate leads at once, also while ctx has ended. If that is
// not confirmed, the lease is dropped: it is not renewed any more and takes the key with it.
func (e *Elector) giveUp(ctx context.Context, s seat) {
	ctx = context.WithoutCancel(ctx)
	for range resignTries {
		callCtx, cancel := context.WithTimeout(ctx, e.cfg.TTL/resignTries)
		_, err := e.client.Txn(callCtx).
			If(clientv3.Compare(clientv3.CreateRevision(s.term.Key), "=", s.term.Revision)).
			Then(clientv3.OpDelete(s.term.Key)).
			Commit()
		cancel()
		if err == nil {
			return
		}
		e.cfg.RetryHook("election", err)
		e.log.Warn("could not resign, trying again", zap.Int64("term", s.term.Revision), zap.Error(err))
		select {
		case <-s.grant.Gone():
			return
		case <-time.After(retryFloor):
		}
	}
	s.grant.Drop()
}
