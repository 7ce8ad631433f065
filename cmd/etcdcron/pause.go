package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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
		Args: aJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.pause(ctx, args[0], n) })
		},
	}
	n.addFlags(cmd.Flags())
	return cmd
}

// controlled is what a job was told.
type controlled struct {
	Job    string    `json:"job"`
	Paused bool      `json:"paused"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

func (c *cluster) pause(ctx context.Context, name string, n note) error {
	def, err := c.job(ctx, name)
	if err != nil {
		return err
	}
	control, err := c.steer(ctx, def, c.store.Pause, n)
	if err != nil {
		return err
	}
	verb := "is"
	if def.Control.Paused {
		verb = "stays"
	}
	if err := c.o.showControl(name, control, verb+" paused: it starts nothing more until it is resumed; a run that is running goes on"); err != nil {
		return err
	}
	c.noteRetired(def)
	return nil
}

// steer pauses or resumes a job, within the time limit of a command.
func (c *cluster) steer(
	ctx context.Context, def state.Definition, do func(ctx context.Context, job, by, reason string) (state.Control, error), n note,
) (state.Control, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.commandTimeout)
	defer cancel()
	control, err := do(limited, def.Spec.Name, n.asker(), n.reason)
	if errors.Is(err, state.ErrNotFound) { // removed since we looked
		return control, c.noJob(ctx, def.Spec.Name)
	}
	return control, err
}

func (o *options) showControl(job string, c state.Control, text string) error {
	return one(o, controlled{Job: job, Paused: c.Paused, Reason: c.Reason, By: c.By, At: c.At}, func() error {
		_, err := fmt.Fprintf(o.stdout, "job %s %s\n", term.Clean(job), text)
		return err
	})
}

// noteRetired tells a person that a job does not run, paused or not.
func (c *cluster) noteRetired(def state.Definition) {
	if def.Spec.Retired {
		c.o.hintf("job %s is retired: the leader no longer has it, so it does not run in any case", def.Spec.Name)
	}
}
