package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// health is what an instance knows of itself. It is there before etcd and the scheduler are.
type health struct {
	waiting  atomic.Pointer[noAnswerError] // why etcd is still waited for; nil when nobody knows
	at       atomic.Pointer[running]       // nil until the scheduler runs
	draining atomic.Bool
	full     atomic.Bool // etcd refused our last write for want of space
}

// running is what health asks once there is something to ask.
type running struct {
	scheduler *cronrunner.Scheduler
	leader    *pulse[leader.Info]
}

func (h *health) run(s *cronrunner.Scheduler, conn *connection, keys state.Keys) {
	h.at.Store(&running{scheduler: s, leader: newPulse(func(ctx context.Context) (leader.Info, error) {
		callCtx, seen := witnessed(ctx)
		info, err := leader.Current(callCtx, conn.client, keys)
		if err != nil && !errors.Is(err, leader.ErrNoLeader) {
			err = conn.failure(context.WithoutCancel(ctx), err, seen) // its deadline is ours, not the asker's
		}
		return info, err
	})})
}

// committed notes how a write ended.
func (h *health) committed(err error) {
	if full := errors.Is(err, rpctypes.ErrNoSpace); full || err == nil {
		h.full.Store(full)
	}
}

// Ready implements [httpapi.Health].
func (h *health) Ready(ctx context.Context) httpapi.Readiness {
	at := h.at.Load()
	if at == nil {
		return h.starting()
	}
	r := httpapi.Readiness{Instance: at.scheduler.ID(), Role: httpapi.RoleFollower}
	_, leads := at.scheduler.Elector().Leading()
	if leads {
		r.Role = httpapi.RoleLeader
	}
	info, err := at.leader.get(ctx)
	r.Leader = info.Instance
	blocker := at.scheduler.Elector().Blocked()
	switch {
	case h.draining.Load():
		r.Reason, r.Hint = "shutting down", "running jobs may finish first"
	case err != nil && !errors.Is(err, leader.ErrNoLeader):
		r.Reason, r.Hint = faultOf(err)
	case blocker != "":
		r.Reason = "nobody can lead: the election key " + blocker + " has no lease and will not go by itself"
		r.Hint = fmt.Sprintf("it was restored from a backup or put there by a tool; delete it: etcdctl del %q", blocker)
	case leads && h.full.Load():
		r.Reason = "etcd is out of space and takes no writes"
		r.Hint = "compact and defragment it, then disarm its alarm (etcdctl alarm list)"
	}
	return r
}

func (h *health) starting() httpapi.Readiness {
	r := httpapi.Readiness{Reason: "starting", Hint: "wait for etcd"}
	if w := h.waiting.Load(); w != nil {
		r.Reason, r.Hint = faultOf(w)
	}
	return r
}

// faultOf is a fault of etcd's in the words of a Readiness.
func faultOf(err error) (reason, hint string) {
	if w := (*noAnswerError)(nil); errors.As(err, &w) {
		return "etcd does not answer: " + w.reason, w.hint
	}
	return err.Error(), "restart with what it needs"
}
