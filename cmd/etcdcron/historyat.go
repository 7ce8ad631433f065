package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// historyAt answers whether a job ran at a time.
func (c *cluster) historyAt(ctx context.Context, job string, at moment) error {
	def, err := inspect.Lookup(ctx, c.store, job)
	if err != nil {
		return err
	}
	w, zone := c.o.when(), zoneOf(&def.Spec)
	instants, err := at.in(zone, w.now)
	switch {
	case errors.Is(err, errSkipped):
		c.o.hintf("the clocks of %s skip %s: what is scheduled then is due when they jump, %s", zone, at, local(instants[0], zone))
	case err != nil:
		return err
	}
	var answer *inspect.At
	for _, t := range instants { // the second only if the first is none of the job's
		if answer, err = inspect.Audit(ctx, c.store, &def, t, w.now); err != nil {
			return err
		}
		if answer.Finding != inspect.NotScheduled {
			break
		}
	}
	if len(instants) > 1 && answer.Time.Equal(instants[0]) {
		c.o.hintf("the clocks of %s show %s twice, and this is about the first; of the second: --at %s", zone, at, instants[1].In(zone).Format(time.RFC3339))
	}
	if err := one(c.o, answer, func() error { return c.o.atText(answer, zone, w) }); err != nil {
		return err
	}
	return verdictOn(answer, zone)
}

// atText shows what there is; that there is nothing is said by the error.
func (o *options) atText(a *inspect.At, zone *time.Location, w when) error {
	if len(a.Runs) == 0 {
		return nil
	}
	screen := o.screen(o.stdout)
	var b bytes.Buffer
	if r := a.RunOf(); r != nil {
		fmt.Fprintln(&b, term.Clean(recordedText(a, r, zone)))
	} else {
		fmt.Fprintln(&b, "no run was due then, but somebody asked for one in that second:")
	}
	b.WriteByte('\n')
	if err := runTable(a.Runs, w, o.output.value == asWide).Write(&b, screen); err != nil {
		return err
	}
	_, err := o.stdout.Write(b.Bytes())
	return err
}

// recordedText says what the record of a time says.
func recordedText(a *inspect.At, r *state.Run, zone *time.Location) string {
	text := local(a.Time, zone) + ": "
	switch {
	case r.Status == state.Succeeded:
		text += "it ran and succeeded, in " + millis(r.DurationMS)
	case r.Status == state.Running:
		text += "it runs"
	case r.Status == state.Pending:
		text += "it waits until the job is idle"
	case r.Attempt == 0:
		text += "it " + inspect.Ended(r)
	default:
		text += "it ran and " + inspect.Ended(r)
	}
	if note := inspect.Reason(r.Reason); note != "" {
		text += " (" + note + ")"
	}
	if a.Finding == inspect.Covered {
		text += fmt.Sprintf("; the record stands for %d times, from %s to %s", r.Times(), term.Instant(r.ScheduledAt), term.Instant(r.Until))
	}
	return text
}

// verdictOn is the error of a time that has no record, or one of a run that did not succeed; else nil.
func verdictOn(a *inspect.At, zone *time.Location) error {
	r := a.RunOf()
	switch {
	case r == nil:
		return &failure{err: fmt.Errorf("job %s has no run of %s: %s", a.Job, local(a.Time, zone), a.Why), code: exitNotFound, try: nearest(a, zone)}
	case r.Status == state.Succeeded || !r.Status.Final():
		return nil
	case r.Attempt == 0:
		text := fmt.Sprintf("run %s of job %s %s", r.ID, r.Job, inspect.Ended(r))
		if note := noteCell(r, false); note != "" {
			text += ": " + note
		}
		return &failure{
			err: errors.New(text), code: exitRunFailed,
			try: fmt.Sprintf("etcdcron backfill %s --from %s --to %s runs it", r.Job, term.Instant(a.Time), term.Instant(a.Time)),
		}
	}
	return runFailed(r)
}

// nearest says when the job was due instead.
func nearest(a *inspect.At, zone *time.Location) string {
	var times []string
	for _, t := range []*time.Time{a.Before, a.After} {
		if t != nil {
			times = append(times, local(*t, zone))
		}
	}
	switch len(times) {
	case 0:
		return "etcdcron history " + a.Job + " lists what there is"
	case 1:
		return "the nearest scheduled time is " + times[0]
	}
	return "the nearest scheduled times are " + strings.Join(times, " and ")
}
