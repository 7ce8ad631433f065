package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// maxItems bounds -n.
const maxItems = 10000

func newHistoryCommand(o *options) *cobra.Command {
	q := historyQuestion{
		n:        20,
		statuses: words[state.RunStatus]{allowed: []state.RunStatus{state.Succeeded, state.Failed, state.Skipped, state.Missed, state.Canceled, state.Running, state.Pending}},
		triggers: words[state.Trigger]{allowed: []state.Trigger{state.BySchedule, state.ByCatchUp, state.ByHand, state.ByRetry, state.ByBackfill}},
	}
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "List runs, newest first, or say whether a job ran at a time",
		Long: `List a job's runs, newest first; without JOB, those of all jobs. A scheduled
time that was not run is listed as well, as skipped or missed, and NOTE says
why. -o wide has more columns; -o json has all that is recorded, the output
among it.

With --at it answers one question: did it run then? It shows the record of
that time, or says why there is none: it is no scheduled time, the job was
paused, is younger, or the record is no longer kept.

A time is written with its offset, as in 2026-11-30T09:00:00+08:00, as the
clocks of the job's zone show it ("2026-11-30 09:00"; UTC without JOB), or
as so long ago (90m, 2h, 7d).

Exit codes: 0 listed; with --at: 0 it ran, or runs or waits, 4 there is no
record, 5 it was recorded and has not succeeded: it failed or was canceled,
skipped or missed.`,
		Example: `  etcdcron history daily_billing -n 1 -o jsonl | jq -r .output
  etcdcron history --status failed,missed --since 24h
  etcdcron history daily_billing --at "2026-11-30 09:00"`,
		Args:              perhapsAJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(cmd, args); err != nil {
				return err
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error {
				switch {
				case q.at != "":
					return c.historyAt(ctx, args[0], q.at)
				case len(args) == 0:
					return c.historyOfAll(ctx, &q)
				}
				return c.history(ctx, args[0], &q)
			})
		},
	}
	cmd.Flags().IntVarP(&q.n, "number", "n", q.n, "how many")
	cmd.Flags().Var(&q.statuses, "status", "only runs with one of these, separated by commas: "+strings.Join(q.statuses.texts(), ", "))
	cmd.Flags().Var(&q.triggers, "trigger", "only runs that came of one of these: "+strings.Join(q.triggers.texts(), ", "))
	cmd.Flags().Var(&q.since, "since", "only runs from this `time` on")
	cmd.Flags().Var(&q.until, "until", "only runs up to this `time`")
	cmd.Flags().StringVar(&q.before, "before", "", "only runs before this `id`")
	cmd.Flags().Var(&q.at, "at", "did JOB run at this `time`?")
	return cmd
}

// historyQuestion is what the flags of history ask.
type historyQuestion struct {
	n                int
	before           string
	statuses         words[state.RunStatus]
	triggers         words[state.Trigger]
	since, until, at moment
}

func (q *historyQuestion) check(cmd *cobra.Command, args []string) error {
	if err := checkCount(cmd, q.n); err != nil {
		return err
	}
	for _, flag := range []string{"status", "trigger", "since", "until", "before", "number"} {
		if q.at != "" && cmd.Flags().Changed(flag) {
			return usage(cmd, "--at asks of one time; --%s does not go with it", flag)
		}
	}
	if len(args) == 0 && (q.before != "" || q.at != "") {
		return usage(cmd, "--before and --at need the name of a job")
	}
	if q.before != "" {
		if _, err := state.RunIDTime(q.before); err != nil {
			return &failure{code: exitBadInput, err: fmt.Errorf("--before: %w", err), try: "an id from the column RUN"}
		}
	}
	return nil
}

// filter is what is wanted, with times by the clocks of zone.
func (q *historyQuestion) filter(zone *time.Location, now time.Time) (f inspect.Filter, err error) {
	f.Statuses, f.Triggers = q.statuses.chosen, q.triggers.chosen
	if q.since != "" {
		since, err := q.since.in(zone, now)
		if err != nil && !errors.Is(err, errSkipped) {
			return f, err
		}
		f.Since = since[0]
	}
	if q.until != "" {
		until, err := q.until.in(zone, now)
		if err != nil && !errors.Is(err, errSkipped) {
			return f, err
		}
		f.Until = until[len(until)-1]
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && f.Until.Before(f.Since) {
		return f, &failure{
			code: exitBadInput, err: fmt.Errorf("--until %s is before --since %s", term.Instant(f.Until), term.Instant(f.Since)),
			try: "the two the other way round",
		}
	}
	return f, nil
}

// none reports whether every run is wanted.
func (q *historyQuestion) none() bool {
	return len(q.statuses.chosen) == 0 && len(q.triggers.chosen) == 0 && q.since == "" && q.until == ""
}

func checkCount(cmd *cobra.Command, n int) error {
	if n < 1 || n > maxItems {
		return usage(cmd, "-n %d: use a number from 1 to %d", n, maxItems)
	}
	return nil
}

func (c *cluster) history(ctx context.Context, job string, q *historyQuestion) error {
	zone := time.UTC
	if q.since != "" || q.until != "" {
		def, err := inspect.Lookup(ctx, c.store, job)
		if err != nil {
			return err
		}
		zone = zoneOf(&def.Spec)
	}
	w := c.o.when()
	f, err := q.filter(zone, w.now)
	if err != nil {
		return err
	}
	runs, cursor, err := inspect.Matching(ctx, c.store, job, q.before, q.n, f)
	if err != nil {
		return err
	}
	if err := list(c.o, runs, func() *term.Table { return runTable(runs, w, c.o.output.value == asWide) }); err != nil {
		return err
	}
	switch {
	case cursor != "" && len(runs) < q.n:
		c.o.hintf("older ones were not looked at: etcdcron history %s --before %s, with the same flags, goes on", job, cursor)
	case cursor != "":
		c.o.hintf("there are older ones: etcdcron history %s --before %s", job, cursor)
	case len(runs) == 0 && !q.none():
		c.o.hintf("job %s has no such run", job)
	case len(runs) == 0 && q.before == "":
		c.o.hintf("job %s has not run yet", job)
	}
	return nil
}

func (c *cluster) historyOfAll(ctx context.Context, q *historyQuestion) error {
	w := c.o.when()
	f, err := q.filter(time.UTC, w.now)
	if err != nil {
		return err
	}
	runs, all, err := inspect.Recent(ctx, c.store, q.n, f)
	if err != nil {
		return err
	}
	if err := list(c.o, runs, func() *term.Table { return allRunsTable(runs, w, c.o.output.value == asWide) }); err != nil {
		return err
	}
	switch {
	case !all:
		c.o.hintf("not every job was looked into: there are too many records; --since, or the name of a job, asks for less")
	case len(runs) == q.n:
		c.o.hintf("there may be older ones: -n shows more, etcdcron history JOB those of one job")
	case len(runs) == 0 && !q.none():
		c.o.hintf("there is no such run under %s", c.keys.Root())
	case len(runs) == 0:
		c.o.hintf("nothing has run yet under %s", c.keys.Root())
	}
	return nil
}

// zoneOf is the zone of a job's schedule.
func zoneOf(spec *state.Spec) *time.Location {
	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil {
		return time.UTC
	}
	return zone
}
