package cronrunner

import (
	"math"
	"time"
)

// A reading is what a wall clock shows, as the Unix seconds of a clock in UTC that shows the same. The
// difference between a reading and its instant is the zone's offset, which is constant over a stretch.

const (
	minInstant = math.MinInt64 / 4
	maxInstant = math.MaxInt64 / 4
	// widest is more than any zone has ever been away from UTC, in seconds.
	widest = 24 * 60 * 60
)

// stretch is a span of instants [start, end) in which a zone's offset does not change.
type stretch struct {
	start, end int64
	offset     int64
}

// stretchAt is the stretch around an instant.
func stretchAt(zone *time.Location, instant int64) stretch {
	t := time.Unix(instant, 0).In(zone)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	s := stretch{start: minInstant, end: maxInstant, offset: int64(offset)}
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	return s
}

func (s stretch) reading(instant int64) int64 { return instant + s.offset }
func (s stretch) instant(reading int64) int64 { return reading - s.offset }

// firstInstant is when the clock of a zone first shows a reading; for one that it skips, when it jumps
// over it. end is the reading at which the stretch of that instant ends.
func firstInstant(zone *time.Location, reading int64) (at, end int64) {
	s := stretchAt(zone, reading-widest)
	for {
		switch {
		case reading < s.reading(s.start):
			return s.start, s.reading(s.end) // skipped between the stretch before and this one
		case reading < s.reading(s.end):
			return s.instant(reading), s.reading(s.end)
		}
		s = stretchAt(zone, s.end)
	}
}
