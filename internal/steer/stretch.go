package steer

import (
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// MaxBackfill is how many scheduled times one backfill may have.
const MaxBackfill = 10_000

// CheckRange says why there can be no backfill from one instant to another. dashes is what stands before the names
// of the two where whoever asks has written them: -- on a command line.
func CheckRange(from, to, now time.Time, dashes string) error {
	switch {
	case to.Before(from):
		return &fault.Error{
			Kind: fault.BadInput, Err: fmt.Errorf("%sto %s is before %sfrom %s", dashes, term.Instant(to), dashes, term.Instant(from)),
			Hint: "the two the other way round",
		}
	case to.After(now):
		return &fault.Error{
			Kind: fault.BadInput, Err: fmt.Errorf("%sto %s is in the future; the schedule itself runs what is to come", dashes, term.Instant(to)),
			Hint: dashes + "to " + term.Instant(now),
		}
	}
	return nil
}

// Stretch is the scheduled times of a job in a range, both ends included.
type Stretch struct {
	First, Last time.Time
	Total       int64

	schedule *cronrunner.Schedule
}

// StretchOf is the part of a job's schedule between two instants; its error says what is wrong with it.
func StretchOf(spec *state.Spec, from, to time.Time) (Stretch, error) {
	schedule, err := cronrunner.ParseSchedule(spec.Schedule, spec.TimeZone)
	if err != nil {
		return Stretch{}, inspect.InvalidJob(spec.Name, err)
	}
	s := Stretch{schedule: schedule.Within(spec.Start, spec.End)}
	s.First, s.Last, s.Total = s.schedule.Between(before(from), to)
	switch {
	case s.Total == 0:
		return s, &fault.Error{
			Kind: fault.BadInput, Err: fmt.Errorf("job %s has no scheduled time from %s to %s", spec.Name, term.Instant(from), term.Instant(to)),
			Hint: s.around(from, to),
		}
	case s.Total > MaxBackfill:
		part := s.Times(MaxBackfill)
		return s, &fault.Error{
			Kind: fault.BadInput,
			Err: fmt.Errorf("job %s has %d scheduled times from %s to %s, more than the %d of one backfill",
				spec.Name, s.Total, term.Instant(from), term.Instant(to), MaxBackfill),
			Hint: "smaller ranges, the first one with --to " + term.Instant(part[len(part)-1]),
		}
	}
	return s, nil
}

// before is the last whole second that is not t or after it.
func before(t time.Time) time.Time { return t.Add(-time.Nanosecond).Truncate(time.Second) }

// lookBack is how far in the past a scheduled time is looked for that could have been meant.
const lookBack = 10 * 366 * 24 * time.Hour

// around names the scheduled times next to a range that has none.
func (s *Stretch) around(from, to time.Time) string {
	_, earlier, _ := s.schedule.Between(from.Add(-lookBack), before(from))
	later := s.schedule.Next(to)
	switch {
	case earlier.IsZero() && later.IsZero():
		return "another job; this one's schedule has no time near"
	case earlier.IsZero():
		return "another range; the next scheduled time is " + term.Instant(later)
	case later.IsZero():
		return "another range; the last scheduled time before is " + term.Instant(earlier)
	}
	return "another range; the nearest scheduled times are " + term.Instant(earlier) + " and " + term.Instant(later)
}

// Times are the first n of them.
func (s *Stretch) Times(n int64) []time.Time {
	return inspect.Times(s.schedule, s.First.Add(-time.Second), int(min(n, s.Total)))
}

// Zone is the time zone of the schedule.
func (s *Stretch) Zone() *time.Location {
	zone, err := time.LoadLocation(s.schedule.Zone())
	if err != nil {
		return time.UTC
	}
	return zone
}

// Text says which they are.
func (s *Stretch) Text() string {
	if s.Total == 1 {
		return "the scheduled time " + term.Instant(s.First)
	}
	return fmt.Sprintf("%d scheduled times, from %s to %s", s.Total, term.Instant(s.First), term.Instant(s.Last))
}
