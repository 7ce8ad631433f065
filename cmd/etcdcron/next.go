package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func newNextCommand(o *options) *cobra.Command {
	var q nextQuestion
	cmd := &cobra.Command{
		Use:   "next JOB|EXPR",
		Short: "Show when a job or a schedule fires next",
		Long: `Show when a job, or a schedule, fires next. A word that can be a job's name
is one, and is looked up in etcd; anything else is a schedule: five fields,
six with seconds first, @daily, @every 90s.`,
		Example: `  etcdcron next daily_billing
  etcdcron next "30 1 * * *" --time-zone America/New_York`,
		Args:              exactly(1, "the name of a job, or a schedule in quotes"),
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCount(cmd, q.n); err != nil {
				return err
			}
			if !isJobName(args[0]) {
				return o.nextOfSchedule(args[0], q)
			}
			if q.zone != "" {
				return usage(cmd, "--time-zone goes with a schedule; job %s has its own", args[0])
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.nextOfJob(ctx, args[0], q) })
		},
	}
	cmd.Flags().StringVar(&q.zone, "time-zone", "", "`zone` of the schedule, such as Asia/Shanghai (default UTC)")
	cmd.Flags().Var(&q.from, "from", "first instant that does not count, such as 2026-10-31T00:00:00-04:00 (default now)")
	cmd.Flags().IntVarP(&q.n, "number", "n", 5, "how many")
	return cmd
}

// nextQuestion is what the flags of next ask.
type nextQuestion struct {
	zone string
	from instantFlag
	n    int
}

// isJobName tells a job from a schedule: no schedule is one word, but for those that begin with @.
func isJobName(arg string) bool { return state.CheckJobName(arg) == nil }

func (o *options) nextOfSchedule(expr string, q nextQuestion) error {
	schedule, err := cronrunner.ParseSchedule(expr, q.zone)
	if err != nil {
		f := &failure{code: exitBadInput, err: err, try: `a schedule such as "0 9 * * *", "*/10 * * * * *", @daily or "@every 90s"`}
		if _, err := cronrunner.ParseSchedule("@daily", q.zone); err != nil {
			f.try = "the name of a region with --time-zone, such as Asia/Shanghai"
		}
		return f
	}
	if o.forPeople() {
		fmt.Fprintf(o.stdout, "%s\n\n", term.Clean(schedule.Words()))
	}
	return o.showNext(inspect.Outlook{Due: schedule, Left: int64(q.n)}, q)
}

func (c *cluster) nextOfJob(ctx context.Context, name string, q nextQuestion) error {
	def, err := inspect.Lookup(ctx, c.store, name)
	if err != nil {
		return err
	}
	outlook, err := inspect.OutlookOf(def)
	if err != nil {
		return inspect.InvalidJob(name, err)
	}
	if err := c.o.showNext(outlook, q); err != nil {
		return err
	}
	switch {
	case def.Spec.Retired:
		c.o.hintf("job %s is retired: it does not run", name)
	case def.Control.Paused:
		c.o.hintf("job %s is paused: it does not run until it is resumed", name)
	}
	return nil
}

func (o *options) showNext(outlook inspect.Outlook, q nextQuestion) error {
	from := time.Time(q.from)
	if from.IsZero() {
		from = o.now()
	}
	next := outlook.Times(from, q.n)
	zone, err := time.LoadLocation(outlook.Due.Zone())
	if err != nil {
		zone = time.UTC
	}
	if err := list(o, next, func() *term.Table { return timeTable(next, zone, from) }); err != nil {
		return err
	}
	switch {
	case outlook.Left == 0:
		o.hintf("it does not fire any more: it has had all the runs that it may have")
	case len(next) == 0:
		o.hintf("it does not fire any more after %s", term.Instant(from))
	}
	return nil
}

func timeTable(next []time.Time, zone *time.Location, now time.Time) *term.Table {
	table := term.NewTable("LOCAL", "UTC", "WHEN")
	for _, t := range next {
		table.Row(local(t, zone), term.Instant(t), term.Relative(t, now))
	}
	return table
}

// local is a time as the clocks of zone show it, with its offset: an hour comes twice in autumn.
func local(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Mon 2006-01-02 15:04:05 -07:00")
}

// instantFlag is a flag that takes an RFC 3339 instant. The zero value is not given.
type instantFlag time.Time

func (f *instantFlag) String() string { return term.Instant(time.Time(*f)) }
func (f *instantFlag) Type() string   { return "instant" }

func (f *instantFlag) Set(value string) error {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return errors.New("write an instant with its offset, such as 2026-10-31T00:00:00-04:00 or 2026-10-31T04:00:00Z")
	}
	*f = instantFlag(t)
	return nil
}
