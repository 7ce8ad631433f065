package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// shownLive is how many running runs of a job are looked into.
const shownLive = 10

// liveRun is a run that is running, and how far it is.
type liveRun struct {
	ID        string          `json:"id"`
	Attempt   int             `json:"attempt"`
	Instance  string          `json:"instance"`
	StartedAt time.Time       `json:"started_at"`
	RetryAt   *time.Time      `json:"retry_at"` // when its next attempt begins, if it waits for that
	Progress  *state.Progress `json:"progress"`
}

// live looks into the runs of a job that are running.
func (c *cluster) live(ctx context.Context, def *state.Definition) ([]liveRun, error) {
	ids := def.View.Status.Live
	runs := make([]liveRun, 0, len(ids))
	for _, id := range ids[:min(len(ids), shownLive)] {
		r, _, err := c.store.Run(ctx, def.Spec.Name, id)
		switch {
		case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrBadRecord), err == nil && r.Status.Final():
			continue // it has ended just now, or its record was put by hand; the leader puts that right
		case err != nil:
			return nil, err
		}
		progress, err := c.store.ProgressOf(ctx, def.Spec.Name, id)
		if err != nil && !errors.Is(err, state.ErrBadRecord) {
			return nil, err
		}
		runs = append(runs, liveRun{
			ID: id, Attempt: r.Attempt, Instance: r.Instance, StartedAt: r.StartedAt, RetryAt: unlessZero(r.RetryAt), Progress: progress,
		})
	}
	return runs, nil
}

// liveText is a line for each run that is running.
func liveText(runs []liveRun, now time.Time) string {
	lines := make([]string, len(runs))
	for i := range runs {
		r := &runs[i]
		lines[i] = r.ID + ": "
		if r.RetryAt != nil {
			lines[i] += fmt.Sprintf("attempt %d failed, the next one %s", r.Attempt, term.Relative(*r.RetryAt, now))
		} else {
			lines[i] += "for " + ongoing(r.StartedAt, now)
			if r.Attempt > 1 {
				lines[i] += fmt.Sprintf(", attempt %d", r.Attempt)
			}
		}
		lines[i] += " on " + r.Instance
		if r.Progress != nil {
			lines[i] += "; " + progressText(r.Progress)
		}
	}
	return strings.Join(lines, "\n")
}

// progressText is how far a run is: 40 of 100 (40%), its message.
func progressText(p *state.Progress) string {
	text := strconv.FormatInt(p.Done, 10)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d (%d%%)", p.Total, min(max(p.Done, 0), p.Total)*100/p.Total)
	}
	if p.Message != "" {
		text += ", " + firstLine(p.Message)
	}
	return text
}
