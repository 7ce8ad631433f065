package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// carryOut does what the plan says, and returns when the last fault is over.
func (b *bed) carryOut(steps []step) {
	began := time.Now()
	var under sync.WaitGroup
	defer under.Wait()
	for _, s := range steps {
		time.Sleep(time.Until(began.Add(s.At)))
		under.Go(func() { b.do(s) })
	}
}

// do does one fault, from its beginning to its end. One that is not possible at the moment is left out.
func (b *bed) do(s step) {
	st := b.seats[s.Seat%len(b.seats)]
	if s.Leader {
		if leading := b.leading(st.space); leading != nil {
			st = leading
		}
	}
	proc := st.process()
	note := func(f checker.Fault) func() {
		f.Kind = s.Kind
		return b.fault(f)
	}
	onSeat := func() func() { return note(checker.Fault{Instance: proc.id, Note: s.For.String()}) }
	network := func(do func(*etcdtest.Proxy), then ...func()) {
		defer onSeat()()
		for _, p := range st.proxies {
			do(p)
		}
		for _, f := range then {
			f()
		}
		time.Sleep(s.For)
		for _, p := range st.proxies {
			p.Heal()
		}
	}
	switch s.Kind {
	case kill, stop:
		defer onSeat()()
		if s.Kind == kill {
			proc.signal(syscall.SIGKILL)
		} else {
			proc.signal(syscall.SIGTERM)
		}
		select {
		case <-proc.done:
		case <-time.After(patience): // frozen, and told to end: the thaw is on its way
		}
		time.Sleep(s.For)
		if err := st.start(); err != nil {
			b.t.Errorf("%s does not start: %v", st.name, err)
		}
	case checker.Freeze:
		over := onSeat()
		proc.signal(syscall.SIGSTOP)
		time.Sleep(s.For)
		proc.signal(syscall.SIGCONT)
		over()
	case cut:
		network((*etcdtest.Proxy).Cut)
	case silence:
		network(func(p *etcdtest.Proxy) { p.Pause() })
	case deaf:
		network(func(p *etcdtest.Proxy) { p.Pause(etcdtest.ToClient) })
	case mute:
		network(func(p *etcdtest.Proxy) { p.Pause(etcdtest.ToServer) })
	case slow:
		network(func(p *etcdtest.Proxy) { p.Delay(s.Amount) })
	case oneSilent:
		defer onSeat()()
		st.proxies[s.Member].Pause()
		time.Sleep(s.For)
		st.proxies[s.Member].Heal()
	case checker.Clock:
		defer onSeat()()
		if err := st.setClock(s.Amount); err != nil {
			b.t.Errorf("clock of %s: %v", st.name, err)
		}
		time.Sleep(s.For)
		if err := st.setClock(0); err != nil {
			b.t.Errorf("clock of %s: %v", st.name, err)
		}
	case deafDethroned:
		network(func(p *etcdtest.Proxy) { p.Pause(etcdtest.ToClient) }, func() {
			b.dethrone(st.space, func(checker.Fault) func() { return func() {} })
		})
	case dethrone:
		b.dethrone(st.space, note)
	case resign:
		ctx, cancel := b.call()
		defer cancel()
		if info, err := leader.Current(ctx, b.client, st.space.store.Keys()); err == nil {
			defer note(checker.Fault{Instance: info.Instance})()
			_, _ = st.space.store.AskToResign(ctx, state.Term{Key: info.Key, Revision: info.Term}, by, "chaos")
		}
	case checker.Revoke, checker.Unlock:
		b.robLock(st.space, s.Kind, note)
	default:
		b.doToEtcd(s, note)
	}
}

type noting = func(checker.Fault) (over func())

// doToEtcd does a fault of the members.
func (b *bed) doToEtcd(s step, note noting) {
	b.etcd.Lock()
	defer b.etcd.Unlock()
	m := b.cluster.Member(s.Member)
	other := b.cluster.Member((s.Member + 1) % members)
	defer note(checker.Fault{Note: fmt.Sprintf("%s for %s", m.Name(), s.For)})()
	var err error
	switch s.Kind {
	case killMember, stopMember:
		if s.Kind == killMember {
			err = m.Kill()
		} else {
			err = m.Stop()
		}
		time.Sleep(s.For)
		if err == nil {
			err = m.Restart()
		}
	case moveLeader:
		_ = b.cluster.MoveLeader(m) // there may be none
	case loseQuorum:
		if err = m.Kill(); err == nil {
			err = other.Kill()
		}
		time.Sleep(s.For)
		if err == nil {
			if err = m.Restart(); err == nil {
				err = other.Restart()
			}
		}
	case restartEtcd:
		err = b.cluster.Stop()
		time.Sleep(s.For)
		if err == nil {
			err = b.cluster.Restart()
		}
	case compact:
		ctx, cancel := b.call()
		defer cancel()
		if resp, err := b.client.Get(ctx, "/chaos"); err == nil {
			_, _ = b.client.Compact(ctx, resp.Header.Revision)
		}
	case noSpace:
		b.fill(s.For)
	}
	if err != nil {
		b.t.Errorf("%s of %s: %v", s.Kind, m.Name(), err)
	}
}

// fill raises the alarm that etcd raises when its quota is used up, and puts it out again.
func (b *bed) fill(lasts time.Duration) {
	ctx, cancel := b.call()
	defer cancel()
	members, err := b.client.MemberList(ctx)
	if err != nil {
		return
	}
	alarm := etcdserverpb.NewMaintenanceClient(b.client.ActiveConnection())
	_, err = alarm.Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE, MemberID: members.Members[0].ID,
	})
	if err != nil {
		return
	}
	time.Sleep(lasts)
	again, cancel := b.call()
	defer cancel()
	_, _ = b.client.AlarmDisarm(again, &clientv3.AlarmMember{}) // or heal does
}

// dethrone deletes the key of whoever leads.
func (b *bed) dethrone(sp *space, note noting) {
	ctx, cancel := b.call()
	defer cancel()
	if info, err := leader.Current(ctx, b.client, sp.store.Keys()); err == nil {
		defer note(checker.Fault{Instance: info.Instance})()
		_, _ = b.client.Delete(ctx, info.Key)
	}
}

// robLock takes a lock away: its key, or its lease.
func (b *bed) robLock(sp *space, kind string, note noting) {
	ctx, cancel := b.call()
	defer cancel()
	keys := sp.store.Keys()
	resp, err := b.client.Get(ctx, keys.Locks(), clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) == 0 {
		return
	}
	lock := resp.Kvs[rand.IntN(len(resp.Kvs))]
	job := keys.JobOfLock(string(lock.Key))
	defer note(checker.Fault{Job: job})()
	if kind == checker.Unlock {
		_, _ = b.client.Delete(ctx, string(lock.Key))
	} else {
		_, _ = b.client.Revoke(ctx, clientv3.LeaseID(lock.Lease))
	}
}

// leading is the seat of whoever leads in a namespace; nil if nobody is known to.
func (b *bed) leading(sp *space) *seat {
	ctx, cancel := b.call()
	defer cancel()
	info, err := leader.Current(ctx, b.client, sp.store.Keys())
	if err != nil {
		return nil
	}
	for _, s := range b.seats {
		if s.space == sp && strings.HasPrefix(info.Instance, s.process().id+"-") {
			return s
		}
	}
	return nil
}
