package chaos

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
	"github.com/etcdcron/etcdcron/test/chaos/workload"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// The narrow places: what it takes for each of the deliberate faults of mutation_test.go to show. Without such a fault
// nothing is to be seen.
func TestNarrowPlaces(t *testing.T) {
	t.Parallel()
	r := provoke(t, settings{lasts: 60 * second, burst: 20, code: codeSeats, jobs: workload.HeldToo, ttl: 5 * second}, func(b *bed) {
		b.killed()
		b.silenced()
		b.usurped()
		b.answeredLate()
	})
	requireNone(t, &r)
}

// provoke has something happen on a bed, and checks it.
func provoke(t *testing.T, s settings, what func(*bed)) Report {
	t.Helper()
	b := newBed(t, s)
	b.begin()
	stop := b.pulse()
	what(b)
	r := b.conclude(Report{Seconds: s.lasts.Seconds()})
	stop()
	t.Log("\n" + r.String())
	return r
}

// pulse notes when we get no time from the machine: what starves us, starves all.
func (b *bed) pulse() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		workload.Pulse(ctx, func(since int64) { b.fault(checker.Fault{Kind: string(checker.Stall), From: since})() })
	})
	return func() { cancel(); done.Wait() }
}

// leader waits until somebody leads the instances that use the library.
func (b *bed) leader() (found *seat) {
	b.t.Helper()
	b.eventually("nobody leads", func(t *assert.CollectT) {
		found = b.leading(b.spaces[0])
		require.NotNil(t, found)
	})
	return found
}

// lock is the seat that a job's lock is at, and the lease; nil if nobody has it.
func (b *bed) lock(job string) (*seat, clientv3.LeaseID) {
	ctx, cancel := b.call()
	defer cancel()
	held, err := b.spaces[0].store.LockOf(ctx, job, "")
	if err != nil || held == nil {
		return nil, 0
	}
	resp, err := b.client.Get(ctx, held.Key)
	if err != nil || len(resp.Kvs) == 0 {
		return nil, 0
	}
	for _, s := range b.seats {
		if strings.HasPrefix(held.Instance, s.process().id+"-") {
			return s, clientv3.LeaseID(resp.Kvs[0].Lease)
		}
	}
	return nil, 0
}

// within waits for a while; what does not come about is no fault here.
func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func (b *bed) done(kind string, s *seat) (over func()) {
	return b.fault(checker.Fault{Kind: kind, Instance: s.process().id})
}

// killed kills the leader in the middle of its runs.
func (b *bed) killed() {
	s := b.leader()
	within(10*second, func() bool { at, _ := b.lock("long"); return at == s })
	over := b.done(kill, s)
	s.process().signal(syscall.SIGKILL)
	<-s.process().done
	b.leader()
	time.Sleep(4 * second) // its locks have run out
	require.NoError(b.t, s.start())
	over()
}

// silenced cuts the leader off until its runs have been taken over, hands the leadership on as soon as it is back, and
// gives it time to do what it still had to do.
func (b *bed) silenced() {
	s := b.leader()
	within(10*second, func() bool {
		long, _ := b.lock("long")
		stubborn, _ := b.lock("stubborn")
		return long == s && stubborn == s
	})
	over := b.done(silence, s)
	for _, p := range s.proxies {
		p.Pause()
	}
	within(6*second, func() bool {
		long, _ := b.lock("long")
		stubborn, _ := b.lock("stubborn")
		return long != nil && long != s && stubborn != nil && stubborn != s
	})
	for _, p := range s.proxies {
		p.Heal()
	}
	over()
	time.Sleep(300 * time.Millisecond)
	b.dethrone(b.spaces[0], func(f checker.Fault) func() { f.Kind = dethrone; return b.fault(f) })
	time.Sleep(3 * second)
}

// usurped deletes the key of a leader that does not hear of it, and is heard itself, just before much is due. The
// clocks of its successors are behind, so that it is the first to claim what is due; but one of them has led, and
// written, before.
func (b *bed) usurped() {
	s := b.leader()
	next := time.Now().Add(1500 * time.Millisecond).Truncate(10 * second).Add(10 * second)
	var slow []func()
	for _, other := range b.seats {
		if other != s {
			require.NoError(b.t, other.setClock(-700*time.Millisecond))
			slow = append(slow, b.done(checker.Clock, other))
		}
	}
	time.Sleep(time.Until(next.Add(-600 * time.Millisecond)))
	over := b.done(deafDethroned, s)
	for _, p := range s.proxies {
		p.Pause(etcdtest.ToClient)
	}
	b.dethrone(b.spaces[0], func(checker.Fault) func() { return func() {} })
	within(time.Until(next), func() bool { other := b.leading(b.spaces[0]); return other != nil && other != s })
	ctx, cancel := b.call()
	defer cancel()
	_, _ = b.spaces[0].store.Submit(ctx, state.Request{Kind: state.AskTrigger, Job: "burst-000", By: by})
	time.Sleep(time.Until(next.Add(800 * time.Millisecond)))
	for _, p := range s.proxies {
		p.Heal()
	}
	over()
	for _, other := range b.seats {
		require.NoError(b.t, other.setClock(0))
	}
	for _, over := range slow {
		over()
	}
	time.Sleep(second)
}

// answeredLate has a lock's lease renewed, keeps the answer back for a third of its TTL, and then cuts the instance off.
func (b *bed) answeredLate() {
	var s *seat
	var lease clientv3.LeaseID
	b.eventually("the job held does not run", func(t *assert.CollectT) {
		s, lease = b.lock("held")
		require.NotNil(t, s)
	})
	left := func() int64 {
		ctx, cancel := b.call()
		defer cancel()
		resp, err := b.client.TimeToLive(ctx, lease)
		if err != nil {
			return -1
		}
		return resp.TTL
	}
	over := b.done(silence, s)
	before := left()
	for _, p := range s.proxies {
		p.Pause(etcdtest.ToClient)
	}
	within(6*second, func() bool {
		now := left()
		renewed := now > before
		before = now
		return renewed
	})
	for _, p := range s.proxies {
		p.Pause()
	}
	time.Sleep(4 * second)
	for _, p := range s.proxies {
		p.Resume(etcdtest.ToClient)
	}
	time.Sleep(200 * time.Millisecond)
	for _, p := range s.proxies {
		p.Cut()
	}
	within(15*second, func() bool { at, _ := b.lock("held"); return at != nil && at != s })
	time.Sleep(4 * second)
	for _, p := range s.proxies {
		p.Heal()
	}
	over()
	b.cancelLive("held")
}

// cancelLive has the runs of a job end that go on.
func (b *bed) cancelLive(job string) {
	b.t.Helper()
	b.eventually("no cancel", func(t *assert.CollectT) {
		ctx, cancel := b.call()
		defer cancel()
		store := b.spaces[0].store
		def, err := store.Job(ctx, job)
		require.NoError(t, err)
		for _, run := range def.View.Status.Live {
			_, err := store.Submit(ctx, state.Request{Kind: state.AskCancel, Job: job, Run: run, By: by})
			if err != nil {
				require.ErrorIs(t, err, state.ErrRunOver)
			}
		}
	})
}
