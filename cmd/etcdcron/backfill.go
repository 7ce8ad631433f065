package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newBackfillCommand(o *options) *cobra.Command {
	var b backfill
	cmd := &cobra.Command{
		Use:   "backfill JOB --from INSTANT --to INSTANT",
		Short: "Run the scheduled times of a range in the past",
		Long: `Run the scheduled times of a range in the past, both ends included, whether
or not they have run before. They run one at a time, the oldest first, and
only while the job is idle and not paused, so what the schedule yields goes
first. Every run is on record under its scheduled time and the suffix of the
backfill's id. The scheduled times are those of the job's schedule as it is
now.

It returns as soon as the backfill was asked for. With --follow it shows how
far it is until all of its runs are over; Ctrl-C ends the following, not the
backfill.

Exit codes: 0 asked for (with --follow: all succeeded), 1 the job is paused,
or the backfill was withdrawn, 3 no scheduled times in the range, or too
many, 4 no such job, 5 with --follow: a run did not succeed.`,
		Example: `  etcdcron backfill daily_billing --from 2026-11-01T00:00:00Z \
    --to 2026-11-07T23:59:59Z --dry-run
  etcdcron cancel daily_billing 20261130T010203Z-babcde
                                            withdraws the rest of a backfill`,
		Args:              aJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			if time.Time(b.from).IsZero() || time.Time(b.to).IsZero() {
				return usage(cmd, "etcdcron backfill needs --from and --to: the first and the last instant of the range")
			}
			if err := steer.CheckRange(time.Time(b.from), time.Time(b.to), o.now(), "--"); err != nil {
				return err
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.backfill(ctx, args[0], &b) })
		},
	}
	cmd.Flags().Var(&b.from, "from", "first instant that counts, such as 2026-11-01T00:00:00Z")
	cmd.Flags().Var(&b.to, "to", "last instant that counts, not in the future")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "show what would run, and ask for nothing")
	addFollow(cmd, &b.follow)
	b.addFlags(cmd.Flags())
	return cmd
}

// backfill is what the flags say.
type backfill struct {
	note

	from, to       instantFlag
	dryRun, follow bool
}

func (c *cluster) backfill(ctx context.Context, job string, b *backfill) error {
	limited, cancel := c.limited(ctx)
	defer cancel()
	plan, err := steer.PlanBackfill(limited, c.store, job, time.Time(b.from), time.Time(b.to), c.o.now())
	switch {
	case err != nil:
		return err
	case b.dryRun:
		return c.dryRun(limited, plan)
	}
	r, err := plan.Submit(limited, b.asked(), c.o.now())
	if err != nil {
		return err
	}
	if b.follow {
		c.o.hintf("backfill %s of %s", r.ID, plan.Text())
		return c.followBackfill(ctx, &r, &plan.Stretch)
	}
	a := plan.Asked(&r)
	if err := one(c.o, a, func() error { return c.o.show(a.Asked, "backfill of "+plan.Text()) }); err != nil {
		return err
	}
	c.o.hintf("etcdcron describe %s shows how far it is; etcdcron cancel %s %s withdraws what has not begun", job, job, r.ID)
	if leads, err := c.leads(ctx); err == nil && !leads {
		c.hintWaiting(ctx)
	}
	return nil
}

func (c *cluster) dryRun(ctx context.Context, plan *steer.Backfill) error {
	p := plan.Preview()
	err := one(c.o, p, func() error {
		fmt.Fprintf(c.o.stdout, "job %s would run %s\n\n", term.Clean(p.Job), plan.Text())
		return timeTable(p.Times, plan.Zone(), c.o.now()).Write(c.o.stdout, c.o.screen(c.o.stdout))
	})
	if err != nil {
		return err
	}
	if more := p.Total - int64(len(p.Times)); more > 0 {
		c.o.hintf("and %d more; nothing was asked for", more)
	} else {
		c.o.hintf("nothing was asked for")
	}
	if f := fault.Of(plan.Refused(ctx, c.o.now())); f != nil {
		c.o.hintf("%s; before the backfill: %s", f, f.Hint)
	}
	return nil
}
