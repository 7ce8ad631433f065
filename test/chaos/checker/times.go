package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// early is how much sooner than scheduled an attempt may begin: what the clock is read by twice.
const early = 100 * time.Millisecond

// times is I3: each scheduled time is accounted for once.
func (c *check) times(j *Job) {
	scheduled := slices.DeleteFunc(slices.Clone(c.Records[j.Name]), func(r Record) bool { return !r.Trigger.Scheduled() })
	slices.SortFunc(scheduled, func(a, b Record) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
	next := after(j.From, j.Every)
	var yielded int64
	var last time.Time
	for i := range scheduled {
		r := &scheduled[i]
		if r.Attempt > 0 || r.Status == state.Pending {
			yielded++
			last = r.Covers()
		}
		if r.ScheduledAt.After(next) {
			c.lost(j, next, r.ScheduledAt.Add(-j.Every))
		}
		if r.ScheduledAt.Before(next) {
			c.faultf("I3", j.Name, r.ID, 0, "scheduled times from %s to %s have a second record, which is %s", stamp(r.ScheduledAt), stamp(r.Covers()), r.Status)
		}
		if n := int64(r.Covers().Sub(r.ScheduledAt)/j.Every) + 1; n != r.Times() || !r.ScheduledAt.Truncate(j.Every).Equal(r.ScheduledAt) {
			c.faultf("I3", j.Name, r.ID, 0, "it stands for %d times from %s to %s, which are %d", r.Times(), stamp(r.ScheduledAt), stamp(r.Covers()), n)
		}
		if r.Covers().After(j.To) {
			c.faultf("I3", j.Name, r.ID, 0, "%s is after the last scheduled time", stamp(r.Covers()))
		}
		if end := r.Covers().Add(j.Every); end.After(next) {
			next = end
		}
	}
	to := j.To
	if j.MaxRuns > 0 {
		if yielded > j.MaxRuns {
			c.faultf("I3", j.Name, "", 0, "its schedule has yielded %d runs, and may yield %d", yielded, j.MaxRuns)
		}
		if yielded == j.MaxRuns {
			to = last
		}
	}
	if !next.After(to) {
		c.lost(j, next, to)
	}
}

func (c *check) lost(j *Job, first, last time.Time) {
	c.faultf("I3", j.Name, state.RunID(first), 0, "scheduled times have no record: from %s to %s", stamp(first), stamp(last))
}

// after is the first scheduled time after t.
func after(t time.Time, every time.Duration) time.Time { return t.Truncate(every).Add(every).UTC() }

func stamp(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// records is that of I3 and I4 which is about what single records say.
func (c *check) records(j *Job) {
	known := make(map[string]bool)
	for i := range c.Records[j.Name] {
		r := &c.Records[j.Name][i]
		if known[r.ID] {
			c.faultf("I3", j.Name, r.ID, 0, "it has a second record, which is %s", r.Status)
		}
		known[r.ID] = true
		if !r.Status.Final() {
			c.faultf("I4", j.Name, r.ID, 0, "its record says that it is %s, and nothing goes on any more", r.Status)
		}
		c.record(j, r)
	}
	for _, a := range c.attempts {
		if a.job == j && !known[a.run] {
			c.faultf("I3", j.Name, a.run, a.start, "attempt %d began, and the run has no record", a.n)
		}
	}
}

// record holds a record against the history of its run.
func (c *check) record(j *Job, r *Record) {
	attempts := slices.Clone(c.byRun[runKey(j.Name, r.ID)])
	slices.SortFunc(attempts, func(a, b *attempt) int { return cmp.Compare(a.n, b.n) })
	var last *attempt // the one that the record is about
	for _, a := range attempts {
		switch {
		case r.Attempt == 0:
			c.faultf("I3", j.Name, r.ID, a.start, "attempt %d began, and the record says %s, without an attempt", a.n, r.Status)
		case a.n > r.Attempt:
			c.faultf("I3", j.Name, r.ID, a.start, "attempt %d began, and the record knows of %d", a.n, r.Attempt)
		case a.n == r.Attempt:
			last = a
		}
		if r.Trigger.Scheduled() && a.wall.Before(r.ScheduledAt.Add(-early)) && !c.clockSet(a) {
			c.faultf("I3", j.Name, r.ID, a.start, "attempt %d began %s before its scheduled time", a.n, r.ScheduledAt.Sub(a.wall))
		}
	}
	if last != nil && r.FencingToken != 0 && r.FencingToken != last.token {
		c.faultf("I1", j.Name, r.ID, last.start, "attempt %d had token %d, and the record says %d", last.n, last.token, r.FencingToken)
	}
	switch {
	case r.Status == state.Succeeded && (last == nil || last.outcome != OK):
		c.faultf("I3", j.Name, r.ID, 0, "the record says that attempt %d has succeeded, and it has not said so itself", r.Attempt)
	case r.Status == state.Failed && last != nil && last.outcome == OK && r.Reason != state.ReasonInstanceLost:
		c.faultf("I3", j.Name, r.ID, 0, "the record says that attempt %d has failed (%s), and it says itself that it was done", r.Attempt, r.Reason)
	}
}

// clockSet reports whether somebody had set a clock before the attempt began.
func (c *check) clockSet(a *attempt) bool {
	return slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Kind == Clock && f.From <= a.start })
}
