package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newLeaderCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "leader",
		Short: "Show which instance leads",
		Long: `Show which instance leads: it schedules, and all instances with the same
etcd, prefix and namespace follow it.

Exit codes: 0 somebody leads, 2 no connection, 4 nobody leads.`,
		Example: "  etcdcron leader -o json | jq -r .instance",
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.showLeader(ctx) })
		},
	}
}

func (c *cluster) showLeader(ctx context.Context) error {
	limited, cancel := c.limited(ctx)
	defer cancel()
	info, err := inspect.Leader(limited, c.client, c.keys)
	if err != nil {
		return err
	}
	return one(c.o, info, func() error {
		table := term.NewTable("INSTANCE", "HOST", "PID", "TERM", "ELECTED", "ADDRESS")
		table.Row(info.Instance, info.Host, strconv.Itoa(info.PID), strconv.FormatInt(info.Term, 10),
			c.o.when().text(info.ElectedAt), info.Address)
		return table.Write(c.o.stdout, c.o.screen(c.o.stdout))
	})
}
