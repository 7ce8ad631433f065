package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newInstancesCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "instances",
		Short: "List the instances that take part, and which leads",
		Long: `List the instances that take part, and which of them leads. One that has
died is listed until its lease has ended, after its --leader-ttl; one that
was stopped is gone at once.`,
		Example: "  etcdcron instances -o json | jq -r '.[].address'",
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.instances(ctx) })
		},
	}
}

func (c *cluster) instances(ctx context.Context) error {
	all, err := inspect.Instances(ctx, c.client, c.store)
	if err != nil {
		return err
	}
	if err := list(c.o, all, func() *term.Table { return instanceTable(all, c.o.when()) }); err != nil {
		return err
	}
	if len(all) == 0 {
		c.o.hintf("no instance takes part under %s; start one with: etcdcron serve -c FILE", c.keys.Root())
		return nil
	}
	c.noteNoLeader(ctx)
	return nil
}

func instanceTable(all []inspect.Instance, w when) *term.Table {
	table := term.NewTable("INSTANCE", "ROLE", "HOST", "PID", "VERSION", "STARTED", "ADDRESS")
	for i := range all {
		in := &all[i]
		var role any = "follower"
		if in.Leads {
			role = term.Styled(term.Good, "leader")
		}
		table.Row(in.ID, role, in.Host, strconv.Itoa(in.PID), in.Version, w.text(in.StartedAt), in.Address)
	}
	return table
}
