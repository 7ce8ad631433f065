package cronrunner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// Canceling a run. A request to cancel is a key named after the run. If the run is running, its owner acts on
// it, leading or not: every instance follows these keys. If it waits, the leader does. Whatever ends the run
// deletes the key in the same transaction, and one that came too late is deleted by the leader.

// cancelCause is why the context of a canceled run ends.
func cancelCause(r *state.Request) error {
	if r.Replaced {
		return ErrReplaced
	}
	text := orDefault(r.By, "somebody")
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return fmt.Errorf("%w by %s", ErrCanceled, text)
}

// followCancels cancels the runs of this instance that are to be canceled, until ctx ends.
func (as *attempts) followCancels(ctx context.Context) {
	keys := as.s.store.Keys()
	_ = as.s.store.Follow(ctx, keys.Cancels(), state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			as.forgetCancels()
			for _, kv := range kvs {
				as.toCancel(kv)
			}
		},
		Event: func(ev *clientv3.Event) {
			if ev.Type == mvccpb.Event_DELETE {
				as.forgetCancel(keys.CanceledAt(string(ev.Kv.Key)))
			} else {
				as.toCancel(ev.Kv)
			}
		},
	})
}

// toCancel notes a request to cancel a run, and cancels it if it is running here. It may be claimed here later.
func (as *attempts) toCancel(kv *mvccpb.KeyValue) {
	r, err := state.DecodeRequest(kv)
	if err != nil {
		return // the leader names it
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	key := r.Job + "/" + r.Run
	as.cancels[key] = r.Request
	if x := as.running[key]; x != nil {
		x.cancel(cancelCause(&r.Request))
	}
}

func (as *attempts) forgetCancels() {
	as.mu.Lock()
	defer as.mu.Unlock()
	clear(as.cancels)
}

func (as *attempts) forgetCancel(key string) {
	as.mu.Lock()
	defer as.mu.Unlock()
	delete(as.cancels, key)
}

// toBeCanceled is the request to cancel a run, if there is one.
func (as *attempts) toBeCanceled(job, run string) (state.Request, bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	r, ok := as.cancels[job+"/"+run]
	return r, ok
}

// stop ends the context of a run that is running here, and reports whether it is.
func (as *attempts) stop(job, run string, cause error) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	x := as.running[job+"/"+run]
	if x != nil {
		x.cancel(cause)
	}
	return x != nil
}

// nextCancel is what is to be done for the requests to cancel runs of a job: those that wait are canceled,
// and requests whose run is over are taken away. A run that is running is its owner's.
func (t *term) nextCancel(js *jobState) task {
	a := t.asks[js.name]
	if a == nil {
		return task{}
	}
	def := js.def
	st := &def.View.Status
	for _, r := range a.cancels {
		switch {
		case slices.Contains(st.Queue, r.Run):
			return task{op: func() effect { return t.cancelQueued(def, r) }}
		case !slices.Contains(st.Live, r.Run):
			return task{op: func() effect { return t.dropCancel(js, r) }}
		}
	}
	return task{}
}

// cancelQueued ends a run that waits.
func (t *term) cancelQueued(def state.Definition, r state.Standing) effect {
	view, err := t.endQueued(def, r.Run, func(run *state.Run) {
		run.Status, run.Reason, run.Error = state.Canceled, state.ReasonRequested, cancelCause(&r.Request).Error()
	})
	return func(t *term) error {
		if err == nil {
			t.acted(r, nil, 0)
		}
		return t.settledQueued(t.jobs[r.Job], view, err)
	}
}

// dropCancel takes away a request to cancel a run that is over.
func (t *term) dropCancel(js *jobState, r state.Standing) effect {
	gone, err := t.dropIfOver(r)
	return func(t *term) error {
		if err == nil {
			t.acted(r, nil, 0)
			js.reload = js.reload || !gone // the run lives, though the status that we know does not have it
		}
		return t.settled(js, state.View{}, err)
	}
}

// dropIfOver takes away a request to cancel a run that is over, or not there, and reports whether it is.
func (t *term) dropIfOver(r state.Standing) (bool, error) {
	as := t.s.attempts
	run, _, err := t.s.store.Run(as.recording, r.Job, r.Run)
	switch {
	case err == nil && !run.Status.Final():
		return false, nil
	case err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrBadRecord):
		return false, err
	}
	_, err = t.s.store.Drop(as.recording, t.held, state.Acted{Standing: r})
	if errors.Is(err, state.ErrRequestGone) {
		err = nil
	}
	return true, err
}

// canceledLost is the record of a run whose instance was lost and that is not to go on: it was to be canceled,
// or replaced, anyway.
func canceledLost(r state.Run, cause error, now time.Time) state.Run {
	r = failLost(r, cause.Error(), now)
	r.Status, r.Reason = state.Canceled, state.ReasonRequested
	if errors.Is(cause, ErrReplaced) {
		r.Reason = state.ReasonReplaced
	}
	return r
}
