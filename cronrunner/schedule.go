package cronrunner

import (
	"time"
)

// Schedule says when a job is due: a set of scheduled times, whole seconds in UTC. Immutable, safe for
// concurrent use.
//
// A cron expression matches readings of the wall clock in its zone. Where a clock is set, that is not
// the same as instants:
//
//   - If the hour field covers all 24 hours, the schedule follows real time: every reading that matches,
//     whenever the clock shows it. An hourly job runs 23 times on the short day and 25 on the long one.
//   - Otherwise each matching reading runs once: one that the clock skips runs at the instant of the
//     jump (several of them once), one that the clock shows twice runs the first time.
type Schedule struct {
	expr string
	zone string
	kind kind
}

// kind is one of cronKind, everyKind, atKind. All times are Unix seconds.
type kind interface {
	next(after int64) (at int64, ok bool)
	count(after, upTo int64) int64 // times in (after, upTo]
}

// String is the expression, without its zone. Schedules of the same String and Zone have the same times.
func (s *Schedule) String() string { return s.expr }

// Zone is the IANA name of the time zone.
func (s *Schedule) Zone() string { return s.zone }

// Next is the first scheduled time after t, in UTC; the zero time when there is none any more, which
// only happens to @at.
func (s *Schedule) Next(t time.Time) time.Time {
	at, ok := s.kind.next(t.Unix())
	if !ok {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}

// Between is the first and the last scheduled time in (after, upTo] and how many there are; zero times
// when there is none. Its cost does not grow with their number.
func (s *Schedule) Between(after, upTo time.Time) (first, last time.Time, count int64) {
	from, to := after.Unix(), upTo.Unix()
	at, ok := s.kind.next(from)
	if !ok || at > to {
		return time.Time{}, time.Time{}, 0
	}
	return time.Unix(at, 0).UTC(), time.Unix(s.last(from, to), 0).UTC(), s.kind.count(from, to)
}

// last is the last time in (from, to], of which there is one. It looks for the last instant whose next
// time is not after to: first doubling a step back from to, then halving it.
func (s *Schedule) last(from, to int64) int64 {
	within := func(x int64) bool {
		at, ok := s.kind.next(x)
		return ok && at <= to
	}
	step := int64(1)
	for to-step > from && !within(to-step) {
		step *= 2
	}
	lo, hi := max(to-step, from), to // within(lo), not within(hi)
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; within(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	at, _ := s.kind.next(lo)
	return at
}

// everyKind is @every: the multiples of a number of seconds since the Unix epoch, so that its times are
// the same for every instance, after every failover and every edit.
type everyKind int64

func (d everyKind) next(after int64) (int64, bool) {
	return (floorDiv(after, int64(d)) + 1) * int64(d), true
}

func (d everyKind) count(after, upTo int64) int64 {
	return max(floorDiv(upTo, int64(d))-floorDiv(after, int64(d)), 0)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// atKind is @at: one instant.
type atKind int64

func (at atKind) next(after int64) (int64, bool) { return int64(at), after < int64(at) }

func (at atKind) count(after, upTo int64) int64 {
	if after < int64(at) && int64(at) <= upTo {
		return 1
	}
	return 0
}

// cronKind is a cron expression in a zone.
type cronKind struct {
	calendar calendar
	zone     *time.Location
}

func (c *cronKind) next(after int64) (int64, bool) {
	if c.calendar.everyHour() {
		return c.nextReal(after)
	}
	return c.nextFixed(after)
}

// nextReal follows real time: the next matching reading within the stretch of constant offset, or else
// within the one after it.
func (c *cronKind) nextReal(after int64) (int64, bool) {
	for s := stretchAt(c.zone, after); ; s = stretchAt(c.zone, s.end) {
		from := max(after, s.start-1)
		r, ok := c.calendar.next(s.reading(from))
		if !ok {
			return 0, false
		}
		if at := s.instant(r); at < s.end {
			return at, true
		}
	}
}

// nextFixed gives each matching reading its one instant.
func (c *cronKind) nextFixed(after int64) (int64, bool) {
	s := stretchAt(c.zone, after)
	r := s.reading(after)
	if first, end := firstInstant(c.zone, r); first < after {
		r = end - 1 // the clock shows it a second time; so it does all until it was set back
	}
	for {
		var ok bool
		if r, ok = c.calendar.next(r); !ok {
			return 0, false
		}
		if at, _ := firstInstant(c.zone, r); at > after {
			return at, true
		}
	}
}

// count sums over the stretches of constant offset: in each of them, the readings that belong to it.
func (c *cronKind) count(after, upTo int64) int64 {
	var n int64
	for s := stretchAt(c.zone, after); s.start <= upTo; s = stretchAt(c.zone, s.end) {
		from := s.reading(max(after, s.start-1)) // exclusive
		to := s.reading(min(upTo, s.end-1))      // inclusive
		if before := stretchAt(c.zone, s.start-1); !c.calendar.everyHour() && s.start != minInstant {
			shown := before.reading(s.start) // all readings before this one were shown already
			if after < s.start && shown < s.reading(s.start) && c.calendar.count(shown-1, s.reading(s.start)-1) > 0 &&
				c.calendar.count(s.reading(s.start)-1, s.reading(s.start)) == 0 {
				n++ // skipped readings run once, at the jump
			}
			from = max(from, shown-1)
		}
		n += max(c.calendar.count(from, to), 0)
		if s.end == maxInstant {
			break
		}
	}
	return n
}
