package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/etcdcron/etcdcron/state"
)

// The ceiling is how fast etcd takes the same transactions as etcdcron sends, when somebody does nothing but send
// them: packed by hand, as many on their way at once as make etcd fastest, and never waiting for a clock.
const (
	ceilingJobs     = 9_984
	ceilingPacked   = 96 // runs in a transaction
	ceilingInFlight = 3
)

// sender sends the transactions of some of the jobs.
type sender struct {
	bed    *bed
	keys   state.Keys
	leader int64 // create revision of the leader's key
	lease  clientv3.LeaseID
	groups []group
}

// group is the jobs of one transaction. All that a transaction writes has the same revision.
type group struct {
	jobs   []string
	specs  int64
	status int64
}

func measureCeiling(ctx context.Context, b *bed, into *result) error {
	keys, err := state.NewKeys("", "")
	if err != nil {
		return err
	}
	lease, err := b.client.Grant(ctx, 60)
	if err != nil {
		return err
	}
	lead, err := b.client.Put(ctx, keys.Candidates()+"1", "{}", clientv3.WithLease(lease.ID))
	if err != nil {
		return err
	}
	senders := make([]*sender, ceilingInFlight)
	for i := range senders {
		senders[i] = &sender{bed: b, keys: keys, leader: lead.Header.Revision, lease: lease.ID}
	}
	for first := 0; first < ceilingJobs; first += ceilingPacked {
		g := group{}
		for i := range ceilingPacked {
			g.jobs = append(g.jobs, jobName(first+i))
		}
		s := senders[first/ceilingPacked%ceilingInFlight]
		if err := s.define(ctx, &g); err != nil {
			return err
		}
		s.groups = append(s.groups, g)
	}

	from := time.Now().Add(warmUp)
	to := from.Add(time.Duration(b.seconds) * time.Second)
	work, ctx := errgroup.WithContext(ctx)
	for _, s := range senders {
		work.Go(func() error { return s.send(ctx, to.Add(time.Second)) })
	}
	work.Go(func() error { return b.between(ctx, from, to, into) })
	return work.Wait()
}

// define writes what the claims compare.
func (s *sender) define(ctx context.Context, g *group) error {
	var specs, statuses []clientv3.Op
	for _, job := range g.jobs {
		specs = append(specs, clientv3.OpPut(s.keys.Spec(job), "{}"))
		statuses = append(statuses, clientv3.OpPut(s.keys.Status(job), "{}"))
	}
	for _, ops := range [][]clientv3.Op{specs, statuses} {
		resp, err := s.bed.client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return err
		}
		g.specs, g.status = g.status, resp.Header.Revision
	}
	return nil
}

// send claims and finishes runs until then.
func (s *sender) send(ctx context.Context, until time.Time) error {
	for due := time.Now().UTC().Truncate(time.Second); ; due = due.Add(time.Second) {
		t := newTemplates(due)
		for i := range s.groups {
			if time.Now().After(until) {
				return nil
			}
			if err := s.run(ctx, &s.groups[i], state.RunID(due), t); err != nil {
				return err
			}
		}
	}
}

func (s *sender) run(ctx context.Context, g *group, id string, t *templates) error {
	claims, finishes := make([]clientv3.Op, len(g.jobs)), make([]clientv3.Op, len(g.jobs))
	for i, job := range g.jobs {
		run, status, lock, control := s.keys.Run(job, id), s.keys.Status(job), s.keys.Lock(job), s.keys.Control(job)
		claims[i] = clientv3.OpTxn([]clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(s.keys.Candidates()+"1"), "=", s.leader),
			clientv3.Compare(clientv3.CreateRevision(run), "=", 0),
			clientv3.Compare(clientv3.ModRevision(s.keys.Spec(job)), "=", g.specs),
			clientv3.Compare(clientv3.CreateRevision(control), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(lock), "=", 0),
			clientv3.Compare(clientv3.ModRevision(status), "=", g.status),
		}, []clientv3.Op{
			clientv3.OpPut(run, t.of(t.running, job)),
			clientv3.OpPut(lock, t.lock, clientv3.WithLease(s.lease)),
			clientv3.OpPut(status, t.started),
		}, nil)
	}
	claimed, err := s.commit(ctx, claims)
	if err != nil {
		return err
	}
	for i, job := range g.jobs {
		run, status, lock := s.keys.Run(job, id), s.keys.Status(job), s.keys.Lock(job)
		finishes[i] = clientv3.OpTxn([]clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(run), "=", claimed),
			clientv3.Compare(clientv3.ModRevision(status), "=", claimed),
		}, []clientv3.Op{
			clientv3.OpPut(run, t.of(t.succeeded, job)),
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(lock), "=", claimed)},
				[]clientv3.Op{clientv3.OpDelete(lock)}, nil),
			clientv3.OpDelete(s.keys.Cancel(job, id)),
			clientv3.OpPut(status, t.ended),
		}, nil)
	}
	g.status, err = s.commit(ctx, finishes)
	s.bed.tally.ended.Add(int64(len(g.jobs)))
	return err
}

var errRefused = errors.New("etcd refused a transaction that nobody contends with")

func (s *sender) commit(ctx context.Context, ops []clientv3.Op) (revision int64, err error) {
	resp, err := s.bed.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	for _, r := range resp.Responses {
		if !r.GetResponseTxn().Succeeded {
			return 0, errRefused
		}
	}
	return resp.Header.Revision, nil
}

// templates are the values of the transactions, made once for many, as what they cost is not etcd's.
type templates struct {
	running, succeeded string // with a name in it that is replaced
	started, ended     string
	lock               string
}

func newTemplates(due time.Time) *templates {
	id, next, started := state.RunID(due), due.Add(time.Second), due.Add(time.Millisecond)
	const instance = "localhost-1000-abcdef"
	run := state.Run{
		Job: jobName(0), ID: id, Trigger: state.BySchedule, ScheduledAt: due, Status: state.Running, Attempt: 1,
		StartedAt: due, TimeoutMS: time.Hour.Milliseconds(), Instance: instance, Term: 10,
	}
	t := &templates{running: encode(run), lock: encode(state.Lock{Run: id, Instance: instance})}
	run.StartedAt, run.FinishedAt, run.FencingToken, run.LatenessMS = started, started, 1_000_000, 1
	run.Status = state.Succeeded
	t.succeeded = encode(run)

	status := state.JobStatus{
		UID: state.NewUID(due), LastStatus: state.Succeeded, LastSuccessAt: started, LastFinishedAt: started,
		SucceededTotal: 10, ScheduledRunsTotal: 10, NextRunAt: next,
	}.Started(&state.Run{ID: id, Trigger: state.BySchedule, ScheduledAt: due, StartedAt: due})
	t.started = encode(status)
	t.ended = encode(status.Finished(&run))
	return t
}

// of is a template of a run for another job.
func (t *templates) of(template, job string) string {
	return strings.Replace(template, jobName(0), job, 1)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err)) // our own records
	}
	return string(b)
}
