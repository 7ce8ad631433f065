package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func newJobsCommand(o *options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs: what runs, what is next, how it went",
		Long: `List the jobs: how many runs of each go on, when it fires next, when its
last run ended and how, and the share of its runs that succeeded. -o wide
has more columns: the schedule in words and the policies among them.`,
		Example: "  etcdcron jobs -o json | jq -r '.[] | select(.last_status == \"failed\") | .name'",
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.jobs(ctx, all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "retired jobs too: those that the leader no longer has")
	return cmd
}

func (c *cluster) jobs(ctx context.Context, all bool) error {
	defs, err := c.store.Jobs(ctx)
	if err != nil {
		return err
	}
	w, retired := c.o.when(), 0
	summaries := make([]inspect.Job, 0, len(defs))
	kept := defs[:0]
	for _, def := range defs {
		if def.Spec.Retired && !all {
			retired++
			continue
		}
		summaries = append(summaries, inspect.Summarize(def, w.now))
		kept = append(kept, def)
	}
	if err := list(c.o, summaries, func() *term.Table { return jobTable(summaries, kept, w, c.o.output.value == asWide) }); err != nil {
		return err
	}
	switch {
	case len(defs) == 0:
		c.o.hintf("there are no jobs under %s; start some with: etcdcron serve -c FILE", c.keys.Root())
	case retired > 0:
		c.o.hintf("%s not shown; --all shows them", count(retired, "retired job"))
	}
	if len(summaries) > 0 {
		c.noteNoLeader(ctx)
	}
	return nil
}

// noteNoLeader tells a person when nobody leads. That it could not be found out is not worth an error.
func (c *cluster) noteNoLeader(ctx context.Context) {
	if !c.o.forPeople() {
		return
	}
	if leads, err := c.leads(ctx); err == nil && !leads {
		c.o.hintf("nobody leads at the moment, so nothing is run; start an instance with: etcdcron serve -c FILE")
	}
}

func jobTable(jobs []inspect.Job, defs []state.Definition, w when, wide bool) *term.Table {
	header := []string{"NAME", "SCHEDULE", "ZONE", "PAUSED", "RUNNING", "NEXT", "LAST", "RESULT", "SUCCESS"}
	if wide {
		header = append(header, "IN WORDS", "ALERTING", "SKIPPED", "MISSED", "OVERLAP", "CATCH-UP", "RECOVERY", "TIMEOUT", "LOCK-TTL", "SOURCE", "TARGET")
	}
	table := term.NewTable(header...).GiveWay("ZONE", "SCHEDULE")
	for i := range jobs {
		j := &jobs[i]
		row := []any{
			j.Name, j.Schedule, j.TimeZone, pausedCell(j), runningCell(j),
			nextCell(j, w), lastCell(j, w), resultCell(j), rate(j.SuccessRate),
		}
		if wide {
			spec := &defs[i].Spec //nolint:gosec // there is one for each job
			row = append(row, inWords(spec), alertingCell(j), some(j.SkippedTotal), some(j.MissedTotal), spec.Overlap, spec.CatchUp, spec.Recovery,
				elapsed(spec.Timeout), elapsed(spec.LockTTL), spec.Source, firstLine(spec.Target))
		}
		table.Row(row...)
	}
	return table
}

func pausedCell(j *inspect.Job) any {
	if j.Paused {
		return term.Styled(term.Caution, "yes")
	}
	return ""
}

// runningCell is how many runs are running, and how many wait for them.
func runningCell(j *inspect.Job) string {
	if j.Pending == 0 {
		return some(int64(j.Running))
	}
	return fmt.Sprintf("%d, %d waiting", j.Running, j.Pending)
}

func nextCell(j *inspect.Job, w when) any {
	switch {
	case j.Invalid != nil:
		return term.Styled(term.Bad, "never: invalid")
	case j.Retired:
		return term.Styled(term.Faint, "never: retired")
	case j.Paused:
		return "" // PAUSED says why
	case j.NextRunAt == nil:
		return term.Styled(term.Faint, "never: over")
	}
	return w.text(*j.NextRunAt)
}

func lastCell(j *inspect.Job, w when) any {
	switch {
	case j.LastFinishedAt != nil:
		return w.text(*j.LastFinishedAt)
	case j.LastStartedAt != nil:
		return w.text(*j.LastStartedAt)
	}
	return ""
}

func resultCell(j *inspect.Job) any {
	switch {
	case j.Invalid != nil:
		return term.Styled(term.Bad, "invalid")
	case j.LastStatus == nil:
		return ""
	}
	return statusCell(*j.LastStatus)
}

// inWords is a schedule in words.
func inWords(spec *state.Spec) string {
	schedule, err := cronrunner.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return ""
	}
	return schedule.Words()
}

func statusCell(s state.RunStatus) any { return term.Styled(statusStyle(s), string(s)) }

func statusStyle(s state.RunStatus) term.Style {
	switch s {
	case state.Succeeded:
		return term.Good
	case state.Failed:
		return term.Bad
	case state.Skipped, state.Missed, state.Canceled:
		return term.Caution
	case state.Pending, state.Running:
	}
	return ""
}

// rate is a share in percent. Only all is 100%, and only none is 0%.
func rate(r *float64) string {
	switch {
	case r == nil:
		return ""
	case *r <= 0:
		return "0%"
	case *r >= 1:
		return "100%"
	}
	return fmt.Sprintf("%d%%", min(max(int(math.Round(*r*100)), 1), 99))
}

// some is a number of things, or nothing.
func some(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func elapsed(d state.Duration) string {
	if d == 0 {
		return ""
	}
	return term.Elapsed(time.Duration(d))
}
