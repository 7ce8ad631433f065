package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

const (
	maxBackfill   = 10_000 // scheduled times of one backfill
	previewedRuns = 5      // that a dry run lists
)

func newBackfillCommand(o *options) *cobra.Command {
	var b backfill
	cmd := &cobra.Command{
		Use:   "backfill JOB --from INSTANT --to INSTANT",
		Short: "Run the scheduled times of a range in the past",
		Long: `Run the scheduled times of a range in the past, both ends included, whether
or not they have run before. They run one at a time, the oldest first, and
only while the job is idle and not paused, so what the schedule yields goes
first. Every run is on record under its scheduled time and the suffix of the
backfill's id. The scheduled times are those of the job's schedule as it is
now.

It returns as soon as the backfill was asked for. With --follow it shows how
far it is until all of its runs are over; Ctrl-C ends the following, not the
backfill.

Exit codes: 0 asked for (with --follow: all succeeded), 1 the job is paused,
or the backfill was withdrawn, 3 no scheduled times in the range, or too
many, 4 no such job, 5 with --follow: a run did not succeed.`,
		Example: `  etcdcron backfill daily_billing --from 2026-11-01T00:00:00Z \
    --to 2026-11-07T23:59:59Z --dry-run
  etcdcron cancel daily_billing 20261130T010203Z-babcde
                                            withdraws the rest of a backfill`,
		Args: aJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			if time.Time(b.from).IsZero() || time.Time(b.to).IsZero() {
				return usage(cmd, "etcdcron backfill needs --from and --to: the first and the last instant of the range")
			}
			if err := b.check(o.now()); err != nil {
				return err
			}
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.backfill(ctx, args[0], &b) })
		},
	}
	cmd.Flags().Var(&b.from, "from", "first instant that counts, such as 2026-11-01T00:00:00Z")
	cmd.Flags().Var(&b.to, "to", "last instant that counts, not in the future")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "show what would run, and ask for nothing")
	addFollow(cmd, &b.follow)
	b.addFlags(cmd.Flags())
	return cmd
}

// backfill is what the flags say.
type backfill struct {
	note

	from, to       instantFlag
	dryRun, follow bool
}

func (b *backfill) check(now time.Time) error {
	from, to := time.Time(b.from), time.Time(b.to)
	switch {
	case to.Before(from):
		return &failure{code: exitBadInput, err: fmt.Errorf("--to %s is before --from %s", &b.to, &b.from), try: "the two the other way round"}
	case to.After(now):
		return &failure{
			code: exitBadInput, err: fmt.Errorf("--to %s is in the future; the schedule itself runs what is to come", &b.to),
			try: "--to " + instant(now),
		}
	}
	return nil
}

// stretch is the scheduled times of a job in a range, both ends included.
type stretch struct {
	schedule    *cronrunner.Schedule
	first, last time.Time
	total       int64
}

// stretchOf is the part of a job's schedule between two instants; its error says what is wrong with it.
func stretchOf(spec *state.Spec, from, to time.Time) (stretch, error) {
	schedule, err := cronrunner.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return stretch{}, fmt.Errorf("job %s is invalid: %w", spec.Name, err)
	}
	s := stretch{schedule: schedule.Within(spec.Start, spec.End)}
	s.first, s.last, s.total = s.schedule.Between(before(from), to)
	switch {
	case s.total == 0:
		return s, &failure{
			code: exitBadInput, err: fmt.Errorf("job %s has no scheduled time from %s to %s", spec.Name, instant(from), instant(to)),
			try: s.around(from, to),
		}
	case s.total > maxBackfill:
		part := s.times(maxBackfill)
		return s, &failure{
			code: exitBadInput,
			err:  fmt.Errorf("job %s has %d scheduled times from %s to %s, more than the %d of one backfill", spec.Name, s.total, instant(from), instant(to), maxBackfill),
			try:  "smaller ranges, the first one with --to " + instant(part[len(part)-1]),
		}
	}
	return s, nil
}

// before is the last whole second that is not t or after it.
func before(t time.Time) time.Time { return t.Add(-time.Nanosecond).Truncate(time.Second) }

// lookBack is how far in the past a scheduled time is looked for that could have been meant.
const lookBack = 10 * 366 * 24 * time.Hour

// around names the scheduled times next to a range that has none.
func (s *stretch) around(from, to time.Time) string {
	_, earlier, _ := s.schedule.Between(from.Add(-lookBack), before(from))
	later := s.schedule.Next(to)
	switch {
	case earlier.IsZero() && later.IsZero():
		return "another job; this one's schedule has no time near"
	case earlier.IsZero():
		return "another range; the next scheduled time is " + instant(later)
	case later.IsZero():
		return "another range; the last scheduled time before is " + instant(earlier)
	}
	return "another range; the nearest scheduled times are " + instant(earlier) + " and " + instant(later)
}

// times are the first n of them.
func (s *stretch) times(n int64) []time.Time {
	return times(s.schedule, s.first.Add(-time.Second), int(min(n, s.total)))
}

func (s *stretch) text() string {
	if s.total == 1 {
		return "the scheduled time " + instant(s.first)
	}
	return fmt.Sprintf("%d scheduled times, from %s to %s", s.total, instant(s.first), instant(s.last))
}

func (c *cluster) backfill(ctx context.Context, job string, b *backfill) error {
	def, err := c.job(ctx, job)
	switch {
	case err != nil:
		return err
	case def.Broken != nil:
		return invalid(def)
	}
	to := time.Time(b.to)
	// With jitter what was scheduled last may not be due yet: the schedule itself runs it.
	if due := c.o.now().Add(-time.Duration(def.Spec.Delay)); to.After(due) {
		to = due.Truncate(time.Second)
	}
	s, err := stretchOf(&def.Spec, time.Time(b.from), to)
	if err != nil {
		return err
	}
	if b.dryRun {
		return c.dryRun(ctx, def, &s)
	}
	if err := c.startable(ctx, def); err != nil {
		return err
	}
	r, err := c.submit(ctx, def, state.Request{
		Kind: state.AskBackfill, By: b.asker(), Reason: b.reason, From: time.Time(b.from), To: to, Total: s.total,
	})
	if err != nil {
		return err
	}
	if b.follow {
		c.o.hintf("backfill %s of %s", r.ID, s.text())
		return c.followBackfill(ctx, &r, &s)
	}
	if err := c.o.showBackfill(&r, &s); err != nil {
		return err
	}
	c.o.hintf("etcdcron describe %s shows how far it is; etcdcron cancel %s %s withdraws what has not begun", job, job, r.ID)
	if leads, err := c.leads(ctx); err == nil && !leads {
		c.hintWaiting(ctx)
	}
	return nil
}

// preview is what a backfill would run.
type preview struct {
	Job   string      `json:"job"`
	Total int64       `json:"total"`
	First time.Time   `json:"first"`
	Last  time.Time   `json:"last"`
	Times []time.Time `json:"times"` // the first few
}

func (c *cluster) dryRun(ctx context.Context, def state.Definition, s *stretch) error {
	p := preview{Job: def.Spec.Name, Total: s.total, First: s.first, Last: s.last, Times: s.times(previewedRuns)}
	err := one(c.o, p, func() error {
		zone, err := time.LoadLocation(s.schedule.Zone())
		if err != nil {
			zone = time.UTC
		}
		fmt.Fprintf(c.o.stdout, "job %s would run %s\n\n", term.Clean(p.Job), s.text())
		return timeTable(p.Times, zone, c.o.now()).Write(c.o.stdout, c.o.screen(c.o.stdout))
	})
	if err != nil {
		return err
	}
	if more := s.total - int64(len(p.Times)); more > 0 {
		c.o.hintf("and %d more; nothing was asked for", more)
	} else {
		c.o.hintf("nothing was asked for")
	}
	if f, ok := errors.AsType[*failure](c.startable(ctx, def)); ok {
		c.o.hintf("%s; before the backfill: %s", f.Error(), f.try)
	}
	return nil
}

// askedBackfill is a backfill as it was asked for, and as it ended when it was followed.
type askedBackfill struct {
	asked

	Total int64     `json:"total"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

func (o *options) showBackfill(r *state.Request, s *stretch) error {
	b := askedBackfill{asked{Job: r.Job, ID: r.ID, Status: isRequested}, s.total, s.first, s.last}
	return one(o, b, func() error { return o.show(b.asked, "backfill of "+s.text()) })
}
