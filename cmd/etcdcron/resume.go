package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newResumeCommand(o *options) *cobra.Command {
	var n note
	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "Have a paused job go on",
		Long: `Have a paused job go on with its next scheduled time. What fell due while it
was paused is not caught up; etcdcron backfill runs it.`,
		Example:           "  etcdcron resume daily_billing --reason \"the database has moved\"",
		Args:              aJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.resume(ctx, args[0], n) })
		},
	}
	n.addFlags(cmd.Flags())
	return cmd
}

func (c *cluster) resume(ctx context.Context, name string, n note) error {
	limited, cancel := c.limited(ctx)
	defer cancel()
	def, control, err := steer.Resume(limited, c.store, name, n.asked())
	if err != nil {
		return err
	}
	if !def.Control.Paused && def.Broken == nil {
		err := c.o.showControl(control, "is not paused, so there is nothing to resume")
		c.noteRetired(def)
		return err
	}
	text := "is resumed"
	if outlook, err := inspect.OutlookOf(def); err == nil && !def.Spec.Retired {
		if next := outlook.Times(c.o.now(), 1); len(next) > 0 {
			text += ": it is due next at " + term.Instant(next[0]) + ", " + term.Relative(next[0], c.o.now())
		}
	}
	if err := c.o.showControl(control, text); err != nil {
		return err
	}
	c.noteRetired(def)
	c.noteNoLeader(ctx)
	return nil
}
