package main

import (
	"context"
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
	n, before := 20, ""
	cmd := &cobra.Command{
		Use:   "history JOB",
		Short: "List a job's runs, newest first",
		Long: `List a job's runs, newest first. A scheduled time that was not run is
listed as well, as skipped or missed, and NOTE says why. -o wide has more
columns; -o json has all that is recorded, the output among it.`,
		Example: "  etcdcron history daily_billing -n 1 -o jsonl | jq -r .output",
		Args:    aJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(cmd, n); err != nil {
				return err
			}
			if before != "" {
				if _, err := state.RunIDTime(before); err != nil {
					return &failure{code: exitBadInput, err: fmt.Errorf("--before: %w", err), try: "an id from the column RUN"}
				}
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error {
				return c.history(ctx, args[0], before, n)
			})
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", n, "how many")
	cmd.Flags().StringVar(&before, "before", "", "only runs before this `id`")
	return cmd
}

func checkCount(cmd *cobra.Command, n int) error {
	if n < 1 || n > maxItems {
		return usage(cmd, "-n %d: use a number from 1 to %d", n, maxItems)
	}
	return nil
}

func (c *cluster) history(ctx context.Context, job, before string, n int) error {
	runs, cursor, err := inspect.History(ctx, c.store, job, before, n)
	if err != nil {
		return err
	}
	now := c.o.now()
	if err := list(c.o, runs, func() *term.Table { return runTable(runs, now, c.o.output.value == asWide) }); err != nil {
		return err
	}
	switch {
	case cursor != "":
		c.o.hintf("there are older ones: etcdcron history %s --before %s", job, cursor)
	case len(runs) == 0 && before == "":
		c.o.hintf("job %s has not run yet", job)
	}
	return nil
}

func runTable(runs []state.Run, now time.Time, wide bool) *term.Table {
	table := term.NewTable("RUN", "STATUS", "SCHEDULED", "DURATION", "NOTE")
	if wide {
		table = term.NewTable("RUN", "STATUS", "TRIGGER", "SCHEDULED", "STARTED", "LATENESS", "DURATION", "ATTEMPT", "INSTANCE", "ASKED-BY", "NOTE")
	}
	for i := range runs {
		r := &runs[i]
		if wide {
			table.Row(r.ID, statusCell(r.Status), string(r.Trigger), term.Instant(r.ScheduledAt), term.Instant(r.StartedAt), latenessCell(r),
				durationCell(r, now), some(int64(r.Attempt)), r.Instance, r.RequestedBy, wideNote(r))
		} else {
			table.Row(r.ID, statusCell(r.Status), term.Relative(r.ScheduledAt, now), durationCell(r, now), noteCell(r, false))
		}
	}
	return table
}

func latenessCell(r *state.Run) string {
	if r.StartedAt.IsZero() {
		return ""
	}
	return millis(r.LatenessMS)
}

func durationCell(r *state.Run, now time.Time) string {
	switch {
	case r.Status == state.Running && !r.StartedAt.IsZero():
		return ongoing(r.StartedAt, now) + " so far"
	case r.FinishedAt.IsZero() || r.StartedAt.IsZero():
		return ""
	}
	return millis(r.DurationMS)
}

// millis is a recorded duration: whole milliseconds, and never no time at all.
func millis(ms int64) string { return term.Elapsed(max(time.Duration(ms)*time.Millisecond, 1)) }

// ongoing is how long what began at start has gone on.
func ongoing(start, now time.Time) string {
	return term.Elapsed(max(now.Sub(start).Round(time.Second), 0))
}

// wideNote is the note of a table that has room: what was asked for comes first.
func wideNote(r *state.Run) string {
	var parts []string
	if r.RetryOf != "" {
		parts = append(parts, "retry of "+r.RetryOf)
	}
	if len(r.Args) > 0 {
		parts = append(parts, "with "+pairs(r.Args, "="))
	}
	if r.RequestWhy != "" {
		parts = append(parts, "asked for: "+firstLine(r.RequestWhy))
	}
	if note := noteCell(r, true); note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, "; ")
}

// noteCell is why a run ended as it did: the reason that the record gives, and the error's first line;
// before that how many times the record is for, and which attempt it was, unless a column has that.
func noteCell(r *state.Run, hasAttempt bool) string {
	var parts []string
	if r.Times() > 1 {
		parts = append(parts, fmt.Sprintf("%d times", r.Times()))
	}
	if r.Attempt > 1 && !hasAttempt {
		parts = append(parts, fmt.Sprintf("attempt %d", r.Attempt))
	}
	if r.Reason != "" && (r.Error == "" || !inError(r.Reason)) {
		parts = append(parts, inspect.Reason(r.Reason))
	}
	if r.Error != "" {
		parts = append(parts, firstLine(r.Error))
	}
	return strings.Join(parts, ": ")
}

// inError reports whether the error of a run with that reason says it too.
func inError(reason string) bool {
	return reason == state.ReasonRequested || reason == state.ReasonReplaced
}

// firstLine is the first line of a text, with a sign that there are more.
func firstLine(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first = strings.TrimRight(first, " \r") + " …"
	}
	return first
}
