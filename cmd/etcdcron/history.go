package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		Args:  aJob,
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
	var runs []state.Run
	cursor := before
	for len(runs) < n {
		page, err := c.store.History(ctx, job, cursor, n-len(runs))
		if err != nil {
			return err
		}
		runs = append(runs, page.Runs...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(runs) == 0 && before == "" { // a job that has not run yet, or none at all
		if _, err := c.job(ctx, job); err != nil {
			return err
		}
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
	table := term.NewTable("RUN", "STATUS", "SCHEDULED", "STARTED", "DURATION", "ATTEMPT", "INSTANCE", "REASON/ERROR")
	when := func(t time.Time) string { return term.Relative(t, now) }
	if wide {
		when = instant
	}
	for i := range runs {
		r := &runs[i]
		table.Row(r.ID, statusCell(r.Status), scheduledCell(r, when), when(r.StartedAt), durationCell(r, now),
			attemptCell(r), r.Instance, whyCell(r))
	}
	return table
}

// instant is a time as JSON has it.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func scheduledCell(r *state.Run, when func(time.Time) string) string {
	if r.Times() > 1 {
		return fmt.Sprintf("%s (%d times)", when(r.ScheduledAt), r.Times())
	}
	return when(r.ScheduledAt)
}

func durationCell(r *state.Run, now time.Time) string {
	switch {
	case r.Status == state.Running && !r.StartedAt.IsZero():
		return term.Elapsed(max(now.Sub(r.StartedAt).Round(time.Second), 0)) + " so far"
	case r.FinishedAt.IsZero() || r.StartedAt.IsZero():
		return ""
	}
	return term.Elapsed(time.Duration(r.DurationMS) * time.Millisecond)
}

func attemptCell(r *state.Run) string {
	if r.Attempt == 0 {
		return ""
	}
	return strconv.Itoa(r.Attempt)
}

// whyCell is why a run ended as it did: the reason that the record gives, and the error's first line.
func whyCell(r *state.Run) string {
	message, _, _ := strings.Cut(strings.TrimSpace(r.Error), "\n")
	if r.Reason != "" && message != "" {
		return r.Reason + ": " + message
	}
	return r.Reason + message
}
