package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// backfillEnd is how a backfill ended: how many of its runs were begun, and how many of those, as far as
// they are on record, ended in which way.
type backfillEnd struct {
	steer.Asked

	Total     int64 `json:"total"`
	Begun     int64 `json:"begun"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
}

// isDone is where a backfill stands when all of its runs are over.
const isDone = "done"

// followBackfill shows how far a backfill is until its request is gone and its runs are over.
func (c *cluster) followBackfill(ctx context.Context, r *state.Request, s *steer.Stretch) error {
	line := c.o.newChangingLine()
	begun := r.Done
	err := c.untilActed(ctx, r.ID, func(left state.Standing) {
		if begun = left.Done; begun > 0 {
			line.show(fmt.Sprintf("%d of %d begun, next %s", begun, s.Total, term.Instant(left.Next)))
		}
	})
	var runs []state.Run
	if err == nil {
		runs, err = c.backfilled(ctx, r, s)
	}
	line.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return &failure{
			err: fmt.Errorf("interrupted; backfill %s of job %s goes on", r.ID, r.Job),
			try: fmt.Sprintf("etcdcron describe %s shows how far it is; etcdcron cancel %s %s withdraws what has not begun", r.Job, r.Job, r.ID),
		}
	case err != nil:
		return err
	}
	end := backfillEnd{Asked: steer.Asked{Job: r.Job, ID: r.ID, Status: isDone}, Total: s.Total}
	return c.o.showBackfillEnd(end.count(runs, begun, s), s)
}

// backfilled waits until the runs of a backfill are over, and returns them, the newest first.
func (c *cluster) backfilled(ctx context.Context, r *state.Request, s *steer.Stretch) ([]state.Run, error) {
	_, suffix, _ := strings.Cut(r.ID, "-")
	first := state.RunID(s.First)
	var runs []state.Run
	for cursor := state.RunID(s.Last.Add(time.Second)); cursor != ""; {
		page, err := c.store.History(ctx, r.Job, cursor, maxHistoryPage)
		if err != nil {
			return nil, err
		}
		cursor = page.Next
		for _, run := range page.Runs {
			if run.ID < first {
				cursor = ""
				break
			}
			if _, of, _ := strings.Cut(run.ID, "-"); of == suffix {
				runs = append(runs, run)
			}
		}
	}
	for i := range runs {
		if over(&runs[i]) || runs[i].Status == "" {
			continue
		}
		switch run, err := c.watchRun(ctx, r.Job, runs[i].ID, over); {
		case err == nil:
			runs[i] = run
		case !errors.Is(err, state.ErrNotFound): // it may have been removed since
			return nil, err
		}
	}
	return runs, nil
}

// maxHistoryPage is how many runs are read at once.
const maxHistoryPage = 500

// count takes in the runs of a backfill. begun is how many had begun when its request was last seen.
func (e *backfillEnd) count(runs []state.Run, begun int64, s *steer.Stretch) *backfillEnd {
	e.Begun = max(begun, int64(len(runs)))
	last := state.RunID(s.Last)
	whole := false
	for i := range runs {
		whole = whole || strings.HasPrefix(runs[i].ID, last+"-")
		switch runs[i].Status { //nolint:exhaustive // a run that was begun ends in one of these
		case state.Succeeded:
			e.Succeeded++
		case state.Failed:
			e.Failed++
		case state.Canceled:
			e.Canceled++
		}
	}
	if whole {
		e.Begun = e.Total
	} else {
		e.Status = steer.Withdrawn
	}
	return e
}

func (o *options) showBackfillEnd(e *backfillEnd, s *steer.Stretch) error {
	text := count(int(e.Begun), "run")
	if e.Begun != e.Total {
		text = fmt.Sprintf("%d of %s begun", e.Begun, count(int(e.Total), "run"))
	}
	text += fmt.Sprintf(", %d succeeded", e.Succeeded)
	for _, n := range []struct {
		n    int64
		what state.RunStatus
	}{{e.Failed, state.Failed}, {e.Canceled, state.Canceled}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	if err := one(o, e, func() error { return o.show(e.Asked, text) }); err != nil {
		return err
	}
	history := fmt.Sprintf("etcdcron history %s --before %s lists them, the newest first", e.Job, state.RunID(s.Last.Add(time.Second)))
	switch {
	case e.Failed+e.Canceled > 0:
		return &failure{
			err: fmt.Errorf("%s of backfill %s did not succeed", count(int(e.Failed+e.Canceled), "run"), e.ID), code: exitRunFailed,
			try: history,
		}
	case e.Status == steer.Withdrawn:
		return &failure{err: fmt.Errorf("backfill %s ended early: it was withdrawn, or its job removed", e.ID), try: history}
	}
	return nil
}
