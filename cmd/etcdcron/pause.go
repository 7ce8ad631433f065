package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func newPauseCommand(o *options) *cobra.Command {
	var n note
	cmd := &cobra.Command{
		Use:   "pause JOB",
		Short: "Have a job start nothing more until it is resumed",
		Long: `Have a job start nothing more until it is resumed. A run that is running
goes on, one that waits goes on waiting. What falls due meanwhile is
skipped, and is not caught up.`,
		Example: `  etcdcron pause daily_billing --reason "the database moves"
  etcdcron resume daily_billing`,
		Args:              aJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.pause(ctx, args[0], n) })
		},
	}
	n.addFlags(cmd.Flags())
	return cmd
}

func (c *cluster) pause(ctx context.Context, name string, n note) error {
	limited, cancel := c.limited(ctx)
	defer cancel()
	was, control, err := steer.Pause(limited, c.store, name, n.asked())
	if err != nil {
		return err
	}
	verb := "is"
	if was.Control.Paused {
		verb = "stays"
	}
	if err := c.o.showControl(control, verb+" paused: it starts nothing more until it is resumed; a run that is running goes on"); err != nil {
		return err
	}
	c.noteRetired(was)
	return nil
}

func (o *options) showControl(c steer.Controlled, text string) error {
	return one(o, c, func() error {
		_, err := fmt.Fprintf(o.stdout, "job %s %s\n", term.Clean(c.Job), text)
		return err
	})
}

// noteRetired tells a person that a job does not run, paused or not.
func (c *cluster) noteRetired(def state.Definition) {
	if def.Spec.Retired {
		c.o.hintf("job %s is retired: the leader no longer has it, so it does not run in any case", def.Spec.Name)
	}
}
