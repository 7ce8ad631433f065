package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/leader"
)

// How often the screen of top is drawn: at least, so that times go on, and at most, so that 10,000 jobs that change
// every second do not keep a terminal busy.
const (
	drawLeast = time.Second
	drawMost  = 250 * time.Millisecond
)

func newTopCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch what runs, what is due next and what fails",
		Long: `Watch what runs and how far it is, what is due next and which jobs fail,
with how many runs end in a second. q or Ctrl-C ends it. If the output is no
terminal, it is one look, as it is with -o json.`,
		Example: `  etcdcron top
  etcdcron top -o json | jq .running`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.top(ctx) })
		},
	}
}

// snapshotItems is how many of each kind one look has.
const snapshotItems = 10

func (c *cluster) top(ctx context.Context) error {
	screen, onScreen := c.o.stdout.(*os.File)
	if !onScreen || !c.o.forPeople() || c.o.screen(c.o.stdout).Height == 0 {
		return c.snapshot(ctx)
	}
	b := newBoard(c)
	return term.FullScreen(ctx, c.o.stdin, screen, func(ctx context.Context, show func(lines []string) error) error {
		return b.watch(ctx, show)
	})
}

// snapshot is one look.
func (c *cluster) snapshot(ctx context.Context) error {
	defs, err := c.store.Jobs(ctx)
	if err != nil {
		return err
	}
	view := inspect.Overlook(defs, snapshotItems, c.o.now())
	if view.Leader, err = c.perhapsLeader(ctx); err != nil {
		return err
	}
	if err := view.LookInto(ctx, c.store); err != nil {
		return err
	}
	return one(c.o, view, func() error {
		for _, line := range topLines(view, nil, c.keys.Root(), c.o.when(), c.o.screen(c.o.stdout)) {
			if _, err := io.WriteString(c.o.stdout, line+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

// perhapsLeader is who leads; nil when nobody does.
func (c *cluster) perhapsLeader(ctx context.Context) (*leader.Info, error) {
	info, err := c.leader(ctx)
	switch {
	case errors.Is(err, leader.ErrNoLeader):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, err
	}
	return &info, nil
}
