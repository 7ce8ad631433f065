package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

func newLogsCommand(o *options) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs JOB [RUN]",
		Short: "Show what a run has printed",
		Long: `Show the end of what a run has printed, 16 KiB at most. Without RUN it is
the last that has begun. The output is recorded when the run ends: while it
goes on there is none here, and --follow waits for it. All of it, line by
line as it comes, is in the log of the instance that runs it.

Exit codes: 0 shown, also if the run failed, 1 it is not over yet, 4 no such
job or run.`,
		Example: `  etcdcron logs daily_billing
  etcdcron logs daily_billing 20261130T010000Z --follow`,
		Args:              aJobAndPerhapsRun,
		ValidArgsFunction: o.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 2 {
				id = args[1]
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.logs(ctx, args[0], id, follow) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "if the run goes on, wait until it is over")
	return cmd
}

// runOutput is what a run has printed.
type runOutput struct {
	Job    string          `json:"job"`
	ID     string          `json:"id"`
	Status state.RunStatus `json:"status"`
	Output string          `json:"output"` // its end
}

func (c *cluster) logs(ctx context.Context, job, id string, follow bool) (err error) {
	if id == "" {
		if id, err = inspect.LastRun(ctx, c.store, job); err != nil {
			return err
		}
	}
	d, err := inspect.Run(ctx, c.store, job, id, c.o.now())
	if err != nil {
		return err
	}
	r := &d.Run
	if !r.Status.Final() {
		if !follow {
			return &fault.Error{
				Kind: fault.RunNotOver,
				Err:  fmt.Errorf("run %s of job %s is %s: its output is recorded when it ends", id, job, r.Status),
				Hint: fmt.Sprintf("etcdcron logs %s %s --follow waits for it", job, id),
			}
		}
		if r, err = c.untilOver(ctx, job, id); err != nil {
			return err
		}
	}
	out := runOutput{Job: job, ID: id, Status: r.Status, Output: r.Output}
	if err := one(c.o, out, func() error {
		var b bytes.Buffer
		writeText(&b, r.Output, "")
		_, err := c.o.stdout.Write(b.Bytes())
		return err
	}); err != nil {
		return err
	}
	if strings.TrimSpace(r.Output) == "" {
		c.o.hintf("run %s, which %s, has printed nothing", id, inspect.Ended(r))
	}
	return nil
}
