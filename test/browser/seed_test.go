package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// seed is a set of jobs with a past, as a company of some services might have them. It is put into etcd as it is:
// nothing of it runs.
type seed struct {
	t      *testing.T
	client *clientv3.Client
	keys   state.Keys
	now    time.Time
	random *rand.Rand
}

// seeded is a job of a seed.
type seeded struct {
	spec      state.Spec
	mean      time.Duration // of a run
	spread    float64       // of its duration, as a share of the mean
	fails     int           // one of so many runs fails; 0 for none
	broken    int           // the last so many have failed
	error     string
	skips     int // after so many runs a time is skipped
	runs      int
	paused    string
	running   *state.Progress
	recovered bool // the run that goes on has lost an instance
	queue     int
	overdue   bool
}

func spec(name, schedule, zone, target, description string, labels ...string) state.Spec {
	s := state.Spec{
		Name: name, Schedule: schedule, TimeZone: zone, Target: target, Description: description, Source: "jobs.yaml",
		Overlap: "skip", CatchUp: "latest", Window: state.Duration(24 * time.Hour), Recovery: "resume", Recoveries: 3,
		Timeout: state.Duration(time.Hour), LockTTL: state.Duration(15 * time.Second), Grace: state.Duration(3750 * time.Millisecond),
		Labels: make(map[string]string),
	}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return s
}

// company is the jobs of a seed.
func company() []seeded {
	billing := spec("daily_billing", "0 9 * * *", "Asia/Shanghai", "/opt/billing/run --all", "charges every account once", "team", "billing", "tier", "critical")
	billing.Timeout, billing.Overlap, billing.Limit = state.Duration(25*time.Minute), "queue", 3
	billing.Retry = &state.RetrySpec{MaxAttempts: 3, Initial: state.Duration(10 * time.Second), Max: state.Duration(5 * time.Minute), Multiplier: 2}
	backup := spec("db_backup", "0 */6 * * *", "UTC", "/usr/local/bin/pg-backup --to s3://backups", "dumps the orders database", "team", "platform")
	invoices := spec("send_invoices", "*/15 * * * *", "UTC", "https://invoices.internal/v1/send", "sends what is due", "team", "billing")
	invoices.Timeout = state.Duration(2 * time.Minute)
	warehouse := spec("warehouse_sync", "@every 5m", "UTC", "/opt/sync/warehouse", "copies orders to the warehouse", "team", "data")
	warehouse.Overlap, warehouse.Limit = "queue", 5
	return []seeded{
		{spec: billing, mean: 14 * time.Minute, spread: .2, fails: 17, error: "exit status 1: account 88214: card declined by the gateway (timeout)", runs: 60, running: &state.Progress{Done: 39_104, Total: 98_200, Message: "accounts charged"}, recovered: true},
		{spec: spec("cache_warm", "@every 1m", "UTC", "/opt/cache/warm", "", "team", "web"), mean: 2400 * time.Millisecond, spread: .5, runs: 70, skips: 23},
		{spec: spec("cert_renewal", "30 3 * * 1", "Europe/Berlin", "/usr/bin/certbot renew", "renews certificates", "team", "platform"), mean: 21 * time.Second, spread: .3, runs: 22},
		{spec: backup, mean: 7 * time.Minute, spread: .15, runs: 64, fails: 40, error: "exit status 2: s3: 503 slow down"},
		{spec: spec("dunning", "0 7 * * MON-FRI", "Europe/Berlin", "/opt/billing/dun", "reminds debtors", "team", "billing"), mean: 95 * time.Second, spread: .4, runs: 45, paused: "law has to see the new texts first"},
		{spec: spec("fx_rates", "0 * * * *", "UTC", "https://rates.internal/pull", "pulls exchange rates", "team", "finance"), mean: 900 * time.Millisecond, spread: .6, runs: 70, fails: 9, broken: 4, error: "HTTP 502 from https://rates.internal/pull"},
		{spec: spec("gdpr_erase", "15 2 * * *", "UTC", "/opt/privacy/erase", "erases what was asked to be erased", "team", "platform"), mean: 48 * time.Second, spread: .3, runs: 40},
		{spec: spec("index_rebuild", "0 4 * * SUN", "UTC", "/opt/search/rebuild", "", "team", "search"), mean: 34 * time.Minute, spread: .25, runs: 20, fails: 12, error: "timeout"},
		{spec: spec("mail_digest", "0 8 * * *", "America/New_York", "/opt/mail/digest", "the morning mail", "team", "web"), mean: 3 * time.Minute, spread: .2, runs: 50},
		{spec: spec("metrics_rollup", "*/10 * * * *", "UTC", "/opt/metrics/rollup", "", "team", "data"), mean: 12 * time.Second, spread: .5, runs: 70, skips: 9},
		{spec: invoices, mean: 31 * time.Second, spread: .5, runs: 70, fails: 14, error: "exit status 75: the mail server is busy"},
		{spec: spec("sitemap", "45 5 * * *", "UTC", "/opt/web/sitemap", "", "team", "web"), mean: 5 * time.Second, spread: .2, runs: 33, overdue: true},
		{spec: spec("usage_report", "0 6 1 * *", "Asia/Shanghai", "/opt/report/usage --month", "the month's usage, for finance", "team", "finance")},
		{spec: warehouse, mean: 4 * time.Minute, spread: .3, runs: 70, running: &state.Progress{Done: 812, Total: 1300, Message: "tables"}, queue: 2},
	}
}

func (s *seed) put(key string, value any) {
	s.t.Helper()
	text, err := json.Marshal(value)
	require.NoError(s.t, err)
	_, err = s.client.Put(s.t.Context(), key, string(text))
	require.NoError(s.t, err)
}

// plant puts the jobs, who leads and who takes part.
func (s *seed) plant(jobs []seeded) {
	s.t.Helper()
	started := s.now.Add(-76 * time.Hour)
	for i, name := range []string{"node-a-7tw3p", "node-b-ceqzr", "node-c-ozsjm"} {
		inst := state.Instance{
			ID: name, Host: name[:6], PID: 1200 + 37*i, Version: "v0.9.0", Address: fmt.Sprintf("http://10.0.3.%d:2390", 11+i), StartedAt: started.Add(time.Duration(i) * time.Minute),
		}
		s.put(s.keys.Instance(name), inst)
		if i == 1 {
			s.put(s.keys.Candidates()+"6a6ca22d4a08761a", struct {
				state.Instance

				ElectedAt time.Time `json:"elected_at"`
			}{inst, s.now.Add(-31 * time.Hour)})
		}
	}
	for i := range jobs {
		s.job(&jobs[i])
	}
}

// job puts a job and its runs.
func (s *seed) job(j *seeded) {
	s.t.Helper()
	sp := &j.spec
	sp.UID, sp.Hash = "20261001T000000Z-"+sp.Name, "f1fe454d8b2b654f"
	sp.CreatedAt, sp.UpdatedAt = s.now.Add(-90*24*time.Hour), s.now.Add(-12*24*time.Hour)
	due, err := cronrunner.DueTimes(sp)
	require.NoError(s.t, err)
	st := state.JobStatus{UID: sp.UID, Cursor: s.now, NextRunAt: due.Next(s.now)}
	for i, at := range s.past(due, j.runs) {
		r := s.run(j, i, at)
		switch r.Status {
		case state.Skipped:
			st = st.NotRun(&r)
		default:
			st = st.Started(&r).Finished(&r)
		}
		s.put(s.keys.Run(sp.Name, r.ID), &r)
	}
	if j.running != nil {
		st = s.live(j, st)
	}
	for i := range j.queue {
		st.Queue = append(st.Queue, state.RunID(s.now.Add(-time.Duration(i)*time.Minute)))
	}
	st.Pending = len(st.Queue)
	if j.overdue {
		st.NextRunAt = s.now.Add(-4 * time.Minute)
	}
	if j.paused != "" {
		s.put(s.keys.Control(sp.Name), state.Control{Paused: true, Reason: j.paused, By: "jo", At: s.now.Add(-5 * time.Hour)})
	}
	s.put(s.keys.Spec(sp.Name), sp)
	s.put(s.keys.Status(sp.Name), &st)
}

// past are the last n times of a schedule before now, the oldest first.
func (s *seed) past(due *cronrunner.Schedule, n int) []time.Time {
	if n == 0 {
		return nil
	}
	for back := time.Hour; ; back *= 2 {
		if _, _, count := due.Between(s.now.Add(-back), s.now.Add(-time.Minute)); count < int64(n) && back < 10*365*24*time.Hour {
			continue
		}
		var all []time.Time
		for t := due.Next(s.now.Add(-back)); t.Before(s.now.Add(-time.Minute)); t = due.Next(t) {
			all = append(all, t.UTC())
		}
		return all[max(len(all)-n, 0):]
	}
}

func (s *seed) run(j *seeded, i int, at time.Time) state.Run {
	took := time.Duration(float64(j.mean) * math.Exp(j.spread*s.random.NormFloat64())).Round(time.Millisecond)
	late := time.Duration(3+s.random.IntN(40)) * time.Millisecond
	zero := 0
	r := state.Run{
		Job: j.spec.Name, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Succeeded, Attempt: 1,
		StartedAt: at.Add(late), LatenessMS: late.Milliseconds(), TimeoutMS: time.Duration(j.spec.Timeout).Milliseconds(),
		Instance: "node-b-ceqzr", Term: 4711, FencingToken: int64(88_000 + 13*i), ExitCode: &zero,
	}
	r.FinishedAt, r.DurationMS = r.StartedAt.Add(took), took.Milliseconds()
	if r.FinishedAt.After(s.now) {
		r.FinishedAt = s.now.Add(-time.Second)
	}
	switch last := j.runs - i; {
	case j.skips > 0 && i%j.skips == j.skips-1:
		return state.Run{Job: r.Job, ID: r.ID, Trigger: r.Trigger, ScheduledAt: at, Status: state.Skipped, Reason: state.ReasonOverlap, FinishedAt: at, Instance: r.Instance, Term: r.Term}
	case last <= j.broken, j.fails > 0 && i%j.fails == j.fails-1 && last > 3:
		one := 1
		r.Status, r.Error, r.ExitCode = state.Failed, j.error, &one
		if j.error == "timeout" {
			r.Reason, r.Error = state.ReasonTimeout, "the attempt has taken longer than 1h0m0s"
		}
	case j.spec.Retry != nil && i%11 == 4:
		r.Attempt, r.Retries = 2, 1
		first := took / 3
		r.Attempts = []state.Attempt{{
			Attempt: 1, Instance: "node-a-7tw3p", FencingToken: r.FencingToken - 5, StartedAt: r.StartedAt, EndedAt: r.StartedAt.Add(first),
			Reason: state.ReasonFailed, Error: "exit status 1",
		}}
		r.StartedAt = r.StartedAt.Add(first + took/8)
		r.DurationMS = r.FinishedAt.Sub(r.StartedAt).Milliseconds()
	}
	r.Output = "connected to orders-db-2\nreading the list of accounts\ndone\n"
	return r
}

// live puts the run of a job that goes on.
func (s *seed) live(j *seeded, st state.JobStatus) state.JobStatus {
	at := s.now.Add(-6*time.Minute - 20*time.Second).Truncate(time.Second)
	r := state.Run{
		Job: j.spec.Name, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, Status: state.Running, Attempt: 1,
		StartedAt: at.Add(12 * time.Millisecond), LatenessMS: 12, TimeoutMS: time.Duration(j.spec.Timeout).Milliseconds(), Instance: "node-b-ceqzr", Term: 4711,
	}
	st = st.Started(&r)
	if j.recovered {
		r.Attempts = []state.Attempt{
			{Attempt: 1, Instance: "node-a-7tw3p", FencingToken: 91_002, StartedAt: r.StartedAt, EndedAt: r.StartedAt.Add(70 * time.Second), Reason: state.ReasonFailed, Error: "exit status 1: the ledger is locked"},
			{Attempt: 2, Instance: "node-a-7tw3p", FencingToken: 91_017, StartedAt: r.StartedAt.Add(82 * time.Second), EndedAt: r.StartedAt.Add(200 * time.Second), Reason: state.ReasonInstanceLost},
		}
		r.Attempt, r.Retries, r.Recoveries, r.StartedAt = 3, 1, 1, r.StartedAt.Add(201*time.Second)
		s.put(s.keys.Checkpoint(r.Job, r.ID), state.Checkpoint{Value: json.RawMessage(`{"account":41500}`), UID: j.spec.UID, Run: r.ID, Attempt: 3, At: s.now.Add(-4 * time.Second)})
	}
	p := *j.running
	p.At = s.now.Add(-12 * time.Second)
	s.put(s.keys.Run(r.Job, r.ID), &r)
	s.put(s.keys.Progress(r.Job, r.ID), &p)
	return st
}
