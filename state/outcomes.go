package state

import (
	"context"
	"time"
)

// Outcomes is how a job's runs ended in a stretch of time that ends now, counted from their records. A run lies where
// its id does: at its scheduled time or, if somebody asked for it, when he did. It is counted once it has succeeded or
// failed.
type Outcomes struct {
	Window         Duration  `json:"window"` // as it was asked for
	Since          time.Time `json:"since"`  // from when on the runs are counted: Window ago, or later if Cut
	Cut            bool      `json:"cut"`    // the window has more records than are read for this
	Succeeded      int64     `json:"succeeded"`
	Failed         int64     `json:"failed"`
	SuccessRate    *float64  `json:"success_rate"`     // from 0 to 1; nil without a run
	MeanDurationMS *float64  `json:"mean_duration_ms"` // of their last attempts; nil without a run
}

// Bounds of what is read to count outcomes: records, and bytes of what they say. The records of a week of a job that
// is due each minute are within the first.
const (
	maxCounted      = 12_000
	maxCountedBytes = 16 << 20
	countedPage     = 500
)

// Outcomes counts how a job's runs ended in each of windows, which are of any length, in any order. It reads the
// records from the newest back to the longest window's begin, but no more than 12,000 of them or, with long outputs,
// 16 MiB: older ones are not counted then. (A status has totals alone: counts for each hour in it would be
// written with every run.) Where that is too little, etcdcron_job_runs_total has the rest.
func (s *Store) Outcomes(ctx context.Context, job string, now time.Time, windows ...time.Duration) ([]Outcomes, error) {
	c := newCounting(now, windows)
	for cursor := ""; ; {
		page, err := s.History(ctx, job, cursor, countedPage)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			if !c.count(&page.Runs[i]) {
				return c.outcomes(), nil
			}
		}
		if cursor = page.Next; cursor == "" {
			return c.outcomes(), nil
		}
	}
}

// counting is a count in the making.
type counting struct {
	all    []Outcomes
	totals []float64 // of durations, in ms
	oldest time.Time
	read   int
	bytes  int
}

func newCounting(now time.Time, windows []time.Duration) *counting {
	c := &counting{oldest: now, totals: make([]float64, len(windows))}
	for _, w := range windows {
		since := now.Add(-w).UTC()
		c.all = append(c.all, Outcomes{Window: Duration(w), Since: since})
		if since.Before(c.oldest) {
			c.oldest = since
		}
	}
	return c
}

// count counts the next older run; false when no more are wanted.
func (c *counting) count(r *Run) (more bool) {
	at, err := RunIDTime(r.ID)
	if err != nil || at.Before(c.oldest) {
		return err != nil // which History leaves out
	}
	c.read++
	c.bytes += len(r.Output) + len(r.Error) + 512
	enough := c.read > maxCounted || c.bytes > maxCountedBytes
	for i := range c.all {
		o := &c.all[i]
		switch {
		case at.Before(o.Since):
		case enough: // others of that second may have been counted
			o.Cut, o.Since = true, at.Add(time.Second)
		case r.Status == Succeeded:
			o.Succeeded++
			c.totals[i] += float64(r.DurationMS)
		case r.Status == Failed:
			o.Failed++
			c.totals[i] += float64(r.DurationMS)
		}
	}
	return !enough
}

func (c *counting) outcomes() []Outcomes {
	for i := range c.all {
		o := &c.all[i]
		if n := float64(o.Succeeded + o.Failed); n > 0 {
			rate, mean := float64(o.Succeeded)/n, c.totals[i]/n
			o.SuccessRate, o.MeanDurationMS = &rate, &mean
		}
	}
	return c.all
}
