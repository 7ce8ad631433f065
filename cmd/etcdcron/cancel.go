package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

func newCancelCommand(o *options) *cobra.Command {
	var n note
	cmd := &cobra.Command{
		Use:   "cancel JOB RUN",
		Short: "End a run, or take back a request",
		Long: `End a run that is running or waits. One that is running is told to stop, and
has the job's grace for that; cancel waits for its end, but not longer than
--command-timeout. RUN may also be the id of a trigger, a retry or a
backfill that nobody has acted on yet: that is withdrawn. Of a backfill that
has begun the rest is, and a run of it that is running goes on.

Exit codes: 0 canceled, withdrawn, or told to stop, 1 it was over already,
or ended in another way, 4 no such job or run.`,
		Example:           "  etcdcron cancel daily_billing 20261130T010000Z --reason \"wrong month\"",
		Args:              aJobAndRun,
		ValidArgsFunction: o.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.cancel(ctx, args[0], args[1], n) })
		},
	}
	n.addFlags(cmd.Flags())
	return cmd
}

func (c *cluster) cancel(ctx context.Context, job, id string, n note) error {
	asking, stop := c.limited(ctx)
	defer stop()
	def, withdrawn, err := steer.Cancel(asking, c.store, job, id, n.asked(), c.o.now())
	switch {
	case err != nil:
		return err
	case withdrawn != nil:
		return c.o.showWithdrawn(withdrawn)
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	var last state.Run
	run, err := c.watchRun(limited, job, id, func(r *state.Run) bool {
		last = *r
		return over(r)
	})
	switch {
	case ctx.Err() != nil:
		return &failure{err: fmt.Errorf("interrupted; run %s of job %s is to be canceled all the same", id, job), try: "etcdcron describe " + job}
	case errors.Is(err, state.ErrNotFound):
		return inspect.NoRun(job, id)
	case limited.Err() != nil && last.ID != "":
		return c.stillStopping(ctx, &def, &last)
	case err != nil:
		return err
	}
	return c.showCanceled(&run)
}

// showWithdrawn shows a request that was taken back.
func (o *options) showWithdrawn(r *state.Standing) error {
	text := fmt.Sprintf("the %s was not acted on yet", r.Kind)
	if r.Kind == state.AskBackfill {
		text = fmt.Sprintf("%d of %d runs of the backfill had begun; the others will not run", r.Done, r.Total)
	}
	return o.show(steer.Asked{Job: r.Job, ID: r.ID, Status: steer.Withdrawn}, text)
}

// stillStopping shows a run that has not ended in the time that a command waits.
func (c *cluster) stillStopping(ctx context.Context, def *state.Definition, r *state.Run) error {
	if err := c.o.show(steer.Came(r), "it is to be canceled, and has not ended yet"); err != nil {
		return err
	}
	if leads, err := c.leads(ctx); err == nil && !leads {
		c.hintWaiting(ctx)
		return nil
	}
	c.o.hintf("it may take the job's grace, %s; etcdcron history %s shows how it ends", elapsed(def.Spec.Grace), r.Job)
	return nil
}

// showCanceled shows how a run ended that was to be canceled.
func (c *cluster) showCanceled(r *state.Run) error {
	if r.Status == state.Canceled {
		text := "it had not begun"
		if r.Attempt > 0 {
			text = "it ran for " + millis(r.DurationMS)
		}
		return c.o.show(steer.Came(r), text)
	}
	if !c.o.forPeople() {
		if err := c.o.show(steer.Came(r), ""); err != nil {
			return err
		}
	}
	return &failure{
		err: fmt.Errorf("run %s of job %s was not canceled: it %s before it could be stopped", r.ID, r.Job, inspect.Ended(r)),
		try: fmt.Sprintf("etcdcron history %s -n 1", r.Job),
	}
}
