package cronrunner

import (
	"math"
	"time"
)

// Scheduled times lie in the years 1 to 9999, which is what RFC 3339 can write.
const (
	minUnix = -62_135_596_800
	maxUnix = 253_402_300_799

	never = math.MaxInt64 // later than any scheduled time
)

// Schedule says when a job is due. It is made by ParseSchedule, immutable and safe for concurrent use.
type Schedule struct {
	expr string
	zone string
	plan plan
}

// plan is one kind of schedule. Instants are Unix seconds within minUnix and maxUnix.
type plan interface {
	// next returns the first scheduled time after the given one; what is later than maxUnix means none.
	next(after int64) int64
	// between returns the first, the last and the number of scheduled times in (after, upTo].
	between(after, upTo int64) (first, last, count int64)
}

// Next returns the first scheduled time strictly after t, in UTC and whole seconds. It returns the zero time when
// there is none: past an @at, or past the year 9999.
func (s *Schedule) Next(t time.Time) time.Time {
	next := s.plan.next(supported(t))
	if next > maxUnix {
		return time.Time{}
	}
	return time.Unix(next, 0).UTC()
}

// Between returns the first and the last scheduled time in (after, upTo], and how many lie in that interval; zero
// times and 0 if none. Its cost grows with the months in the interval, not with the scheduled times.
func (s *Schedule) Between(after, upTo time.Time) (first, last time.Time, count int64) {
	from, to := supported(after), supported(upTo)
	if from >= to {
		return time.Time{}, time.Time{}, 0
	}
	f, l, count := s.plan.between(from, to)
	if count == 0 {
		return time.Time{}, time.Time{}, 0
	}
	return time.Unix(f, 0).UTC(), time.Unix(l, 0).UTC(), count
}

// String returns the normalised expression, without its zone. Two schedules with the same String and Zone have the
// same scheduled times.
func (s *Schedule) String() string { return s.expr }

// Zone returns the IANA name of the schedule's zone, or "UTC".
func (s *Schedule) Zone() string { return s.zone }

// supported returns t in whole seconds, rounded down, within the years that have scheduled times.
func supported(t time.Time) int64 {
	return min(max(t.Unix(), minUnix), maxUnix)
}

// everyPlan is due at the multiples of its seconds since the Unix epoch: the same grid for every instance.
type everyPlan int64

func (d everyPlan) next(after int64) int64 {
	return (floorDiv(after, int64(d)) + 1) * int64(d)
}

func (d everyPlan) between(after, upTo int64) (first, last, count int64) {
	n, m := floorDiv(after, int64(d))+1, floorDiv(upTo, int64(d))
	return n * int64(d), m * int64(d), m - n + 1
}

// atPlan is due at one instant.
type atPlan int64

func (at atPlan) next(after int64) int64 {
	if int64(at) > after {
		return int64(at)
	}
	return never
}

func (at atPlan) between(after, upTo int64) (first, last, count int64) {
	if after < int64(at) && int64(at) <= upTo {
		return int64(at), int64(at), 1
	}
	return 0, 0, 0
}

// wallTimes is due when the clocks of a zone show one of a set of local times.
//
// With everyHour it follows real time: it is due whenever the clocks show one, twice if they show it twice. Otherwise
// a local time is due once, at the first instant at which the clocks show it or a later one: for what they skip that
// is the jump, and what they show again has been due already.
type wallTimes struct {
	localTimes
	location  *time.Location
	everyHour bool
}

func (w *wallTimes) next(after int64) int64 {
	clock := newZoneClock(w.location, w.everyHour, after, maxUnix)
	for clock.step() {
		if local := w.firstFrom(clock.lo); local <= clock.hi {
			return clock.instant(local)
		}
	}
	return never
}

func (w *wallTimes) between(after, upTo int64) (first, last, count int64) {
	clock := newZoneClock(w.location, w.everyHour, after, upTo)
	for clock.step() {
		n := w.count(clock.lo, clock.hi)
		if n == 0 {
			continue
		}
		if inGap := w.count(clock.lo, clock.start+clock.offset); inGap > 1 {
			n -= inGap - 1 // all due at the jump: one run
		}
		if count == 0 {
			first = clock.instant(w.firstFrom(clock.lo))
		}
		last = clock.instant(w.lastUpTo(clock.hi))
		count += n
	}
	return first, last, count
}
