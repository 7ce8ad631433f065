package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/tally"
)

// check is a check in the making.
type check struct {
	Input

	jobs       map[string]*Job
	attempts   []*attempt // in the order in which they began
	byRun      map[string][]*attempt
	violations []Violation
}

// Check decides whether what etcdcron did was right. The violations come in the order in which they happened, those of
// what stands at the end last.
func Check(in Input) []Violation {
	in.Events = slices.Clone(in.Events)
	slices.SortStableFunc(in.Events, func(a, b Event) int { return cmp.Compare(a.Mono, b.Mono) })
	c := &check{Input: in, jobs: make(map[string]*Job), byRun: make(map[string][]*attempt)}
	for i := range in.Jobs {
		c.jobs[in.Jobs[i].Name] = &in.Jobs[i]
	}
	c.collect()
	c.claims()
	c.overlaps()
	c.terms()
	c.fences()
	c.checkpoints()
	for i := range c.Jobs {
		c.times(&c.Jobs[i])
		c.records(&c.Jobs[i])
		c.ends(&c.Jobs[i])
	}
	c.requests()
	for _, key := range c.Leftovers {
		c.faultf("I4", "", "", 0, "%s is left behind", key)
	}
	slices.SortStableFunc(c.violations, func(a, b Violation) int {
		if (a.Mono == 0) != (b.Mono == 0) {
			return cmp.Compare(b.Mono, a.Mono)
		}
		return cmp.Compare(a.Mono, b.Mono)
	})
	for i := range c.violations {
		c.violations[i].Around = c.around(c.violations[i])
	}
	return c.violations
}

func (c *check) faultf(rule, job, run string, mono int64, format string, args ...any) {
	c.violations = append(c.violations, Violation{Rule: rule, Job: job, Run: run, Mono: mono, Text: fmt.Sprintf(format, args...)})
}

// ends is I4 and I6: nothing goes on any more, and what was counted is what there is.
func (c *check) ends(j *Job) {
	status := c.Statuses[j.Name]
	if len(status.Live)+len(status.Queue) > 0 {
		c.faultf("I4", j.Name, "", 0, "its status says that runs are live: %v, and wait: %v", status.Live, status.Queue)
	}
	records := slices.Clone(c.Records[j.Name])
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Modified, b.Modified) })
	runs := make([]state.Run, len(records))
	for i, r := range records {
		runs[i] = r.Run
	}
	if differences := tally.Differences(status, runs); len(differences) > 0 {
		c.faultf("I6", j.Name, "", 0, "the status is not what the records say: %s", strings.Join(differences, "; "))
	}
}

// requests is that of I3 which is about what people have asked for.
func (c *check) requests() {
	for _, ask := range c.Asked {
		if !slices.ContainsFunc(c.Records[ask.Job], func(r Record) bool { return r.ID == ask.Run }) {
			c.faultf("I3", ask.Job, ask.Run, 0, "it was asked for, and has no record")
		}
	}
}
