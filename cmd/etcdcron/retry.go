package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

func newRetryCommand(o *options) *cobra.Command {
	var n note
	var follow bool
	cmd := &cobra.Command{
		Use:   "retry JOB RUN",
		Short: "Do a run that is over once more",
		Long: `Do a run that is over once more: a new run, with an id of its own, for the
same scheduled time and with the same arguments. How RUN ended does not
matter; its record stays. If the job still runs, its overlap policy decides.

Exit codes: 0 asked for (with --follow: succeeded), 1 skipped, RUN is not
over yet, or the job is paused, 4 no such job or run, 5 with --follow: the
new run did not succeed.`,
		Example:           "  etcdcron retry daily_billing 20261130T010000Z --follow",
		Args:              aJobAndRun,
		ValidArgsFunction: o.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error {
				return c.start(ctx, follow, func(ctx context.Context) (state.Request, error) {
					return steer.Retry(ctx, c.store, args[0], args[1], n.asked(), o.now())
				})
			})
		},
	}
	addFollow(cmd, &follow)
	n.addFlags(cmd.Flags())
	return cmd
}
