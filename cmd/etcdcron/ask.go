package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

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

// asker is who asks.
func (n *note) asker() string { return cmp.Or(n.by, self()) }

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

// asked is what came of a request so far.
type asked struct {
	Job    string `json:"job"`
	ID     string `json:"id"`
	Status string `json:"status"` // of the run; what stands below before there is one
	Reason string `json:"reason,omitempty"`
}

// Where a request stands that is no run.
const (
	isRequested = "requested" // nobody has acted on it yet
	isWithdrawn = "withdrawn"
)

// came is what came of a request when it has become a run.
func came(r *state.Run) asked {
	return asked{Job: r.Job, ID: r.ID, Status: string(r.Status), Reason: r.Reason}
}

// show is one line, JOB ID STATUS, and what there is to say of it.
func (o *options) show(a asked, more string) error {
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

// submit makes a request, within the time limit of a command.
func (c *cluster) submit(ctx context.Context, def state.Definition, r state.Request) (state.Request, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.commandTimeout)
	defer cancel()
	r.Job = def.Spec.Name
	made, err := c.store.Submit(limited, r)
	if err != nil && limited.Err() != nil {
		f := &failure{
			err: fmt.Errorf("it is not known whether the %s was asked for: etcd has not answered", r.Kind), code: exitNoConnection,
			try: "etcdcron describe " + r.Job + " shows what was asked for",
		}
		if ctx.Err() != nil {
			f.err, f.code = fmt.Errorf("interrupted; it is not known whether the %s was asked for", r.Kind), exitFailed
		}
		return made, f
	}
	return made, c.refusal(ctx, def, r.Run, err)
}

// startable says why nothing can be asked for that starts a run.
func (c *cluster) startable(ctx context.Context, def state.Definition) error {
	switch {
	case def.Broken != nil:
		return invalid(def)
	case def.Spec.Retired:
		return c.refusal(ctx, def, "", state.ErrRetired)
	case def.Control.Paused:
		return c.refusal(ctx, def, "", state.ErrPaused)
	}
	return nil
}

// refusal is why a request was not made, for a person.
func (c *cluster) refusal(ctx context.Context, def state.Definition, run string, err error) error {
	job := def.Spec.Name
	switch {
	case errors.Is(err, state.ErrPaused):
		text := "paused"
		if def.Control.Paused { // when we looked
			text = pausedText(&def.Control, c.o.now())
		}
		return &failure{err: fmt.Errorf("job %s is %s", job, text), try: "etcdcron resume " + job}
	case errors.Is(err, state.ErrRetired):
		return &failure{
			err: fmt.Errorf("job %s is retired: the leader no longer has it", job),
			try: "put it back into the jobs file, and start serve again",
		}
	case errors.Is(err, state.ErrRunOver):
		return c.overAlready(ctx, job, run)
	case errors.Is(err, state.ErrRunNotOver):
		return &failure{
			err: fmt.Errorf("run %s of job %s is not over yet", run, job),
			try: fmt.Sprintf("again when it is; etcdcron cancel %s %s ends it now", job, run),
		}
	case errors.Is(err, state.ErrNotFound) && run != "":
		return noRun(job, run)
	}
	return err
}

func invalid(def state.Definition) error {
	return fmt.Errorf("job %s is invalid: %w", def.Spec.Name, def.Broken)
}

func noRun(job, id string) error {
	return &failure{
		err: fmt.Errorf("job %s has no run and no request %s", job, id), code: exitNotFound,
		try: fmt.Sprintf("etcdcron history %s lists its runs, etcdcron describe %s what was asked for", job, job),
	}
}

// overAlready is the error of canceling a run that is over.
func (c *cluster) overAlready(ctx context.Context, job, id string) error {
	how := ""
	if run, _, err := c.store.Run(ctx, job, id); err == nil && run.Status.Final() {
		how = ": it " + strings.TrimSpace(ended(&run)+" "+ago(run.FinishedAt, c.o.now()))
	}
	return &failure{
		err: fmt.Errorf("run %s of job %s is over already%s", id, job, how),
		try: fmt.Sprintf("etcdcron retry %s %s does it once more", job, id),
	}
}

// ended says how a run that is over has ended, as in "run X ...".
func ended(r *state.Run) string {
	if r.Status == state.Succeeded || r.Status == state.Failed {
		return string(r.Status)
	}
	return "was " + string(r.Status)
}

// ago is a relative time for a sentence.
func ago(t, now time.Time) string {
	if text := term.Relative(t, now); text != "now" {
		return text
	}
	if t.After(now) {
		return "at once"
	}
	return "just now"
}

// checkRunID says why an argument can be no run's id.
func checkRunID(job, id string) error {
	if _, err := state.RunIDTime(id); err != nil {
		return &failure{err: err, code: exitBadInput, try: "an id from the column RUN of: etcdcron history " + job}
	}
	return nil
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
