package cronrunner

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// followControls has each job whose control has changed read anew.
func (t *term) followControls(ctx context.Context) {
	keys := t.s.store.Keys()
	_ = t.s.store.Follow(ctx, keys.Controls(), state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			controls := make(map[string]*mvccpb.KeyValue, len(kvs))
			for _, kv := range kvs {
				controls[keys.JobOfControl(string(kv.Key))] = kv
			}
			t.tell(func(t *term) error {
				for _, js := range t.jobs {
					t.controlled(js, controls[js.name])
				}
				return nil
			})
		},
		Event: func(ev *clientv3.Event) {
			control := ev.Kv
			if ev.Type == mvccpb.Event_DELETE {
				control = nil
			}
			t.tell(func(t *term) error {
				if js := t.jobs[keys.JobOfControl(string(ev.Kv.Key))]; js != nil {
					t.controlled(js, control)
				}
				return nil
			})
		},
	})
}

// controlled takes a job's control as it stands; nil when there is none. What was claimed ahead of a pause is
// not begun.
func (t *term) controlled(js *jobState, control *mvccpb.KeyValue) {
	rev := int64(0)
	if js.pausedSeen {
		js.resumeSeen = t.now()
	}
	js.pausedSeen = false
	if control != nil {
		rev = control.ModRevision
		js.pausedSeen = state.IsPaused(control)
	}
	if js.pausedSeen {
		js.resumeSeen = time.Time{}
		t.s.attempts.stopUnbegun(js.name, errPaused)
	}
	if js.job != nil && js.def.ControlRev != rev {
		js.reload = true
		t.enqueue(js)
	}
}

// noteResumed notes until when a job was paused, as it is read anew. What counts is this instance's clock, by which
// the scheduled times are decided; the time that whoever resumed it has put down tells how long ago that was, if it
// makes sense by this clock too.
func (t *term) noteResumed(js *jobState, now *state.Control) {
	switch {
	case now.Paused:
		js.pausedAt = t.now() // it still was
	case js.def.Control.Paused:
		seen := orDefault(js.resumeSeen, t.now())
		js.resumed = seen
		if now.At.After(js.pausedAt) && now.At.Before(seen) && seen.Sub(now.At) <= onTime {
			js.resumed = now.At
		}
	case js.def.SpecRev == 0:
		js.resumed = minTime(now.At, t.now()) // nobody led then, or another instance did
	}
}
