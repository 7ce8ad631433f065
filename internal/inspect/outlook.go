package inspect

import (
	"errors"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// Outlook is what a job's schedule has yet to yield: when the job is due, and for how many runs.
type Outlook struct {
	Due  *cronrunner.Schedule
	Left int64
}

// OutlookOf is a job's outlook. Its error says why the job is invalid.
func OutlookOf(def state.Definition) (Outlook, error) {
	switch {
	case def.Broken != nil:
		return Outlook{}, def.Broken
	case def.SpecRev == 0:
		return Outlook{}, errors.New("its definition is not there")
	}
	due, err := cronrunner.DueTimes(&def.Spec)
	return Outlook{Due: due, Left: cronrunner.RunsLeft(&def.Spec, &def.View.Status)}, err
}

// Times are the next n times at which the job is due after from; fewer if it will not be due so often.
func (o Outlook) Times(from time.Time, n int) []time.Time {
	return Times(o.Due, from, int(min(int64(n), o.Left)))
}

// Times are the next n times of a schedule after from; fewer if it ends.
func Times(schedule *cronrunner.Schedule, from time.Time, n int) []time.Time {
	next := make([]time.Time, 0, min(n, 1000))
	for t := schedule.Next(from); len(next) < n && !t.IsZero(); t = schedule.Next(t) {
		next = append(next, t.UTC())
	}
	return next
}
