package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/leader"
)

func newResignCommand(o *options) *cobra.Command {
	var n note
	var agreed consent
	cmd := &cobra.Command{
		Use:   "resign",
		Short: "Have the leader hand over to another instance",
		Long: `Have the leader hand over to another instance, which takes milliseconds.
What runs goes on where it runs. If there is no other instance, the same one
leads again. On a terminal it asks first; --yes answers that.

Exit codes: 0 another term has begun, or the request stands, 1 you said no,
4 nobody leads.`,
		Example: `  etcdcron resign --dry-run
  etcdcron resign --yes --reason "the machine is to be restarted"`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.resign(ctx, n, agreed) })
		},
	}
	n.addFlags(cmd.Flags())
	agreed.addFlags(cmd.Flags())
	return cmd
}

// handover is what came of asking the leader to resign.
type handover struct {
	Status   string       `json:"status"`   // resigned; requested while nobody has acted on it; with --dry-run: would_resign
	Was      leader.Info  `json:"was"`      // who was asked
	Now      *leader.Info `json:"now"`      // who leads since; null while nobody does
	Others   int          `json:"others"`   // instances that could take over
	Reason   string       `json:"reason"`   // that was given
	TookMS   int64        `json:"took_ms"`  // from the request to the next term
	AskedFor string       `json:"asked_by"` // who asked
}

const (
	hasResigned = "resigned"
	wouldResign = "would_resign"
)

func (c *cluster) resign(ctx context.Context, n note, agreed consent) error {
	was, h, err := c.beforeHandover(ctx, n)
	if err != nil {
		return err
	}
	to := "it would lead again: it is the only instance"
	if h.Others > 0 {
		to = fmt.Sprintf("%s could take over", count(h.Others, "other instance"))
	}
	if agreed.dryRun {
		h.Status = wouldResign
		return one(c.o, h, func() error {
			_, err := fmt.Fprintf(c.o.stdout, "%s would resign; %s\n", term.Clean(was.Instance), to)
			return err
		})
	}
	if err := c.o.given(ctx, agreed, fmt.Sprintf("%s is to resign; %s. Go on?", was.Instance, to)); err != nil {
		return err
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	began := time.Now()
	if _, _, err := steer.Resign(limited, c.client, c.store, was.Term, n.asked()); err != nil {
		return err
	}
	err = c.watchKey(limited, c.keys.Resign(was.Term), func(kv *mvccpb.KeyValue) bool { return kv == nil })
	if err == nil {
		h.Status = hasResigned
		h.Now, err = c.successor(limited, was.Term)
		h.TookMS = time.Since(began).Milliseconds()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if showErr := one(c.o, h, func() error { return c.o.handoverText(h) }); showErr != nil {
		return showErr
	}
	if err != nil {
		c.hintWaiting(ctx)
	}
	return nil
}

// beforeHandover is who leads, and who could.
func (c *cluster) beforeHandover(ctx context.Context, n note) (leader.Info, *handover, error) {
	limited, cancel := c.limited(ctx)
	defer cancel()
	was, err := inspect.Leader(limited, c.client, c.keys)
	if err != nil {
		return was, nil, err
	}
	all, err := inspect.Instances(limited, c.client, c.store)
	if err != nil {
		return was, nil, err
	}
	asked := n.asked()
	h := &handover{Status: steer.Requested, Was: was, Reason: asked.Reason, AskedFor: asked.By}
	for i := range all {
		if all[i].ID != was.Instance {
			h.Others++
		}
	}
	return was, h, nil
}

// successor waits for another term than that one.
func (c *cluster) successor(ctx context.Context, term int64) (*leader.Info, error) {
	const look = 20 * time.Millisecond
	for {
		info, err := c.perhapsLeader(ctx)
		if err == nil && info != nil && info.Term != term {
			return info, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(look):
		}
	}
}

func (o *options) handoverText(h *handover) error {
	text := term.Clean(h.Was.Instance)
	switch {
	case h.Status != hasResigned:
		text += " is asked to resign, and has not yet"
	case h.Now == nil:
		text += " has resigned, and nobody leads yet"
	case h.Now.Instance == h.Was.Instance:
		text += fmt.Sprintf(" has resigned, and leads again: there is no other instance (%s)", millis(h.TookMS))
	default:
		text += fmt.Sprintf(" has resigned; %s leads (%s)", term.Clean(h.Now.Instance), millis(h.TookMS))
	}
	_, err := fmt.Fprintln(o.stdout, text)
	return err
}
