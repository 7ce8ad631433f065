package checker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// slack is what a lock has beside the grace of its job: an instance that lost less time than that has lost nothing.
const slack = 250 * time.Millisecond

// attempt is what the history says of one attempt.
type attempt struct {
	job      *Job
	run      string
	n        int
	token    int64
	instance string
	start    int64
	last     int64 // the last sign of life
	told     int64 // 0 if it was not told to stop
	restored int64
	outcome  string // "" for one that has no end
	wall     time.Time
}

// stop is until when the attempt surely went on, and was etcdcron's to answer for: one that was told to stop, and goes
// on for longer than it said it would, does so at its own risk.
func (a *attempt) stop() int64 {
	if a.told != 0 {
		return min(a.last, a.told+int64(a.job.Grace))
	}
	return a.last
}

func runKey(job, run string) string { return job + "/" + run }

// collect puts the attempts together. An attempt that began twice was claimed twice.
func (c *check) collect() {
	type key struct {
		job, run string
		n        int
	}
	found := make(map[key]*attempt)
	for _, e := range c.Events {
		if e.Kind == Stall {
			c.Faults = append(c.Faults, Fault{Kind: string(Stall), Instance: e.Instance, From: e.Called, To: e.Mono})
			continue
		}
		k := key{e.Job, e.Run, e.Attempt}
		a, job := found[k], c.jobs[e.Job]
		switch {
		case job == nil:
			c.faultf("I3", e.Job, e.Run, e.Mono, "there is no such job")
		case e.Kind == Start && a != nil:
			c.faultf("I1", e.Job, e.Run, e.Mono, "attempt %d began a second time: it was claimed on %s with token %d, and on %s with token %d",
				e.Attempt, a.instance, a.token, e.Instance, e.Token)
		case e.Kind == Start:
			a = &attempt{
				job: job, run: e.Run, n: e.Attempt, token: e.Token, instance: e.Instance, start: e.Mono, last: e.Mono, restored: e.Value, wall: e.Wall,
			}
			found[k] = a
			c.attempts = append(c.attempts, a)
			c.byRun[runKey(e.Job, e.Run)] = append(c.byRun[runKey(e.Job, e.Run)], a)
		case a == nil:
			c.faultf("I3", e.Job, e.Run, e.Mono, "attempt %d goes on and has not begun", e.Attempt)
		default:
			a.last = e.Mono
			switch {
			case e.Kind == Told && a.told == 0:
				a.told = e.Mono
			case e.Kind == End:
				a.outcome = e.Outcome
			}
		}
	}
}

// claims is that of I1 which is about tokens.
func (c *check) claims() {
	for _, attempts := range c.byRun {
		attempts = slices.Clone(attempts)
		slices.SortFunc(attempts, func(a, b *attempt) int { return cmp.Compare(a.n, b.n) })
		for i := 1; i < len(attempts); i++ {
			if a, b := attempts[i-1], attempts[i]; b.token <= a.token {
				c.faultf("I1", b.job.Name, b.run, b.start, "attempt %d has token %d, and attempt %d had %d: tokens must rise", b.n, b.token, a.n, a.token)
			}
		}
	}
}

// overlaps is I2, and that of I1 which is about attempts at the same time.
func (c *check) overlaps() {
	type lane struct {
		live    []*attempt
		highest *attempt
	}
	lanes := make(map[string]*lane)
	for _, a := range c.attempts {
		name := a.job.Name
		if a.job.Shared {
			name = runKey(name, a.run)
		}
		l := lanes[name]
		if l == nil {
			l = &lane{highest: a}
			lanes[name] = l
		}
		l.live = slices.DeleteFunc(l.live, func(other *attempt) bool { return other.stop() <= a.start })
		for _, other := range l.live {
			stale, fresh := other, a
			if a.token < other.token {
				stale, fresh = a, other
			}
			rule := "I2"
			if other.run == a.run {
				rule = "I1"
			}
			if !c.excused(stale, fresh) {
				c.faultf(rule, a.job.Name, a.run, a.start, "attempt %d on %s began while attempt %d of %s went on, on %s, for another %s at least",
					a.n, a.instance, other.n, other.run, other.instance, time.Duration(other.stop()-a.start).Round(time.Millisecond))
			}
		}
		l.live = append(l.live, a)
		switch {
		case a.token > l.highest.token:
			l.highest = a
		case a != l.highest && a.run != l.highest.run && !c.excused(a, l.highest):
			c.faultf("I1", a.job.Name, a.run, a.start, "attempt %d has token %d, and %s, which began before it, had %d: tokens must rise",
				a.n, a.token, l.highest.run, l.highest.token)
		}
	}
}

// excused reports whether the stale attempt may have gone on, or begun, after the fresh one was claimed.
func (c *check) excused(stale, fresh *attempt) bool {
	from := min(stale.start, fresh.start) - int64(time.Second)
	late := max(from, fresh.start-2*int64(stale.job.LockTTL)) // before that, nothing had to do with it
	to := max(stale.stop(), stale.start)
	during := func(f *Fault, from int64) bool { return f.From <= to && f.To >= from }
	for i := range c.Faults {
		f := &c.Faults[i]
		switch {
		case !during(f, from):
		case f.Kind == Freeze || f.Kind == string(Stall):
			if (f.Instance == stale.instance || f.Instance == "") && during(f, late) && f.To-f.From >= int64(slack) {
				return true
			}
		case f.Kind == Unlock:
			if f.Job == stale.job.Name {
				return true
			}
		case f.Kind == Revoke:
			if c.disturbed(f, fresh.start) {
				return true
			}
		}
	}
	return false
}

// disturbed reports whether there was another fault when the lease was revoked, or soon after: the instance may not
// have heard of it.
func (c *check) disturbed(revoked *Fault, until int64) bool {
	for i := range c.Faults {
		f := &c.Faults[i]
		long := f.Kind != string(Stall) || f.To-f.From >= int64(slack)
		if f != revoked && f.Kind != Revoke && long && f.From <= until && f.To >= revoked.From-int64(5*time.Second) {
			return true
		}
	}
	return false
}

// terms is that of I1 which is about leaders: the revision at which a leader writes tells when, and a later term begins
// when the one before it is over. So in the order of revisions, terms do not fall.
func (c *check) terms() {
	type write struct {
		revision, term int64
		record         *Record
	}
	var writes []write
	for _, records := range c.Records {
		for i := range records {
			r := &records[i]
			switch {
			case r.Term == 0:
			case r.Attempt == 0 && r.Status.Final() && r.Created == r.Modified:
				writes = append(writes, write{r.Modified, r.Term, r})
			case r.FencingToken > 0 && r.Retries == 0: // a retry is its owner's, whoever leads
				writes = append(writes, write{r.FencingToken, r.Term, r})
			}
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.term, b.term)) })
	for i := 1; i < len(writes); i++ {
		if a, b := writes[i-1], writes[i]; b.term < a.term {
			c.faultf("I1", b.record.Job, b.record.ID, 0, "%s was written at revision %d in term %d, which was over: %s/%s had been written in term %d, at revision %d",
				b.record.Status, b.revision, b.term, a.record.Job, a.record.ID, a.term, a.revision)
			writes[i].term = a.term
		}
	}
}

// fences is that of I2 which is about the target: it takes no token after a greater one, and it refuses nothing else.
func (c *check) fences() {
	lane := func(e *Event) string {
		if j := c.jobs[e.Job]; j != nil && j.Shared {
			return runKey(e.Job, e.Run)
		}
		return e.Job
	}
	taken, claimed := make(map[string]int64), make(map[string]int64)
	for i := range c.Events {
		e := &c.Events[i]
		if e.Kind == Stall {
			continue
		}
		l := lane(e)
		claimed[l] = max(claimed[l], e.Token)
		switch {
		case e.Kind != Write:
		case e.Accepted && e.Token < taken[l]:
			c.faultf("I2", e.Job, e.Run, e.Mono, "the target took a write of attempt %d with token %d after one with token %d", e.Attempt, e.Token, taken[l])
		case e.Accepted:
			taken[l] = e.Token
		case e.Token >= claimed[l]:
			c.faultf("I2", e.Job, e.Run, e.Mono, "the target refused a write of attempt %d with token %d, and no attempt has a greater one", e.Attempt, e.Token)
		}
	}
}

// checkpoints is I5.
func (c *check) checkpoints() {
	type saved struct {
		run          string
		n            int
		asked, acked int64 // the greatest value that was asked for, and that was acknowledged
	}
	ended := make(map[string]bool) // runs whose record says that they succeeded
	for job, records := range c.Records {
		for i := range records {
			if records[i].Status == "succeeded" {
				ended[runKey(job, records[i].ID)] = true
			}
		}
	}
	began := make(map[string]*attempt) // the newest attempt of a run, or of a job
	notes := make(map[string][]*saved)
	for _, e := range c.Events {
		j := c.jobs[e.Job]
		if j == nil || e.Kind == Stall {
			continue
		}
		lane := runKey(e.Job, e.Run)
		if j.PerJob {
			lane = e.Job
		}
		all := notes[lane]
		i := slices.IndexFunc(all, func(s *saved) bool { return s.run == e.Run && s.n == e.Attempt })
		switch e.Kind { //nolint:exhaustive // the others say nothing of checkpoints
		case Start:
			least, most := int64(0), int64(0)
			for _, s := range all {
				if s.run != e.Run && ended[runKey(e.Job, s.run)] {
					least, most = 0, 0
					continue
				}
				least, most = max(least, s.acked), max(most, s.asked)
			}
			if newest := began[lane]; (newest == nil || newest.token < e.Token) && e.Value < least {
				c.faultf("I5", e.Job, e.Run, e.Mono, "attempt %d goes on from checkpoint %d, and %d had been acknowledged", e.Attempt, e.Value, least)
			} else if e.Value > most {
				c.faultf("I5", e.Job, e.Run, e.Mono, "attempt %d goes on from checkpoint %d, and nobody had got beyond %d", e.Attempt, e.Value, most)
			}
			for _, a := range c.byRun[runKey(e.Job, e.Run)] {
				if a.n == e.Attempt && (began[lane] == nil || began[lane].token < a.token) {
					began[lane] = a
				}
			}
			notes[lane] = append(all, &saved{run: e.Run, n: e.Attempt, asked: e.Value, acked: math.MinInt64})
		case Asking:
			if i >= 0 {
				all[i].asked = max(all[i].asked, e.Value)
			}
		case Saved:
			if i >= 0 {
				all[i].acked = max(all[i].acked, e.Value)
			}
			if newest := began[lane]; newest != nil && newest.token > e.Token && e.Called > newest.start {
				c.faultf("I5", e.Job, e.Run, e.Mono, "attempt %d was told that its checkpoint %d was kept, though attempt %d of %s had begun before it asked",
					e.Attempt, e.Value, newest.n, newest.run)
			}
		}
	}
}
