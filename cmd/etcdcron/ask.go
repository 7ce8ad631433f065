package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Asking for something: what the commands that change a job have in common.

// note is who asks, and why.
type note struct{ by, reason string }

func (n *note) addFlags(f *pflag.FlagSet) {
	f.StringVar(&n.reason, "reason", "", "`text` that says why")
	f.StringVar(&n.by, "by", "", "`name` of who asks (default your own, and the host's)")
}

// asked is the note as it is written down: without a name it is our own.
func (n *note) asked() steer.Note { return steer.Note{By: cmp.Or(n.by, self()), Reason: n.reason} }

// maxSelf is how long the name of whoever asks may be, in bytes, when it is not given.
const maxSelf = 128

// self is the user and the host, as in jo@web-1. In a container there may be neither.
func self() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return state.CutHead(name, maxSelf)
}

// show is one line, JOB ID STATUS, and what there is to say of it.
func (o *options) show(a steer.Asked, more string) error {
	return one(o, a, func() error {
		screen := o.screen(o.stdout)
		status := screen.Paint(statusStyle(state.RunStatus(a.Status)), a.Status)
		if more != "" {
			status += ": " + term.Clean(more)
		}
		_, err := fmt.Fprintln(o.stdout, term.Clean(a.Job), term.Clean(a.ID), status)
		return err
	})
}

// limited is a context within the time limit of a command.
func (c *cluster) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.o.commandTimeout)
}

// hintWaiting tells a person that a request was made but nobody has acted on it yet, and why.
func (c *cluster) hintWaiting(ctx context.Context) {
	switch leads, err := c.leads(ctx); {
	case err != nil:
		c.o.hintf("nobody has acted on it yet; it stands until somebody does")
	case leads:
		c.o.hintf("the leader has not acted on it yet; it stands until somebody does")
	default:
		c.o.hintf("nobody leads at the moment; it is acted on as soon as an instance does: etcdcron serve -c FILE")
	}
}
