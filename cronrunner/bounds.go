package cronrunner

import (
	"sort"
	"time"
)

// Within returns the schedule with only those of its times that lie in [start, end]. A zero time is no bound.
func (s *Schedule) Within(start, end time.Time) *Schedule {
	if start.IsZero() && end.IsZero() {
		return s
	}
	bounded := *s
	b := boundedPlan{plan: s.plan, start: minUnix, end: maxUnix}
	if !start.IsZero() {
		b.start = supported(start.Add(time.Second - time.Nanosecond)) // times are whole seconds
	}
	if !end.IsZero() {
		b.end = supported(end)
	}
	bounded.plan = b
	return &bounded
}

// boundedPlan is due at the times of another that lie in [start, end].
type boundedPlan struct {
	plan

	start, end int64
}

func (b boundedPlan) next(after int64) int64 {
	if next := b.plan.next(max(after, b.start-1)); next <= b.end {
		return next
	}
	return never
}

func (b boundedPlan) between(after, upTo int64) (first, last, count int64) {
	after, upTo = max(after, b.start-1), min(upTo, b.end)
	if after >= upTo {
		return 0, 0, 0
	}
	return b.plan.between(after, upTo)
}

// beforeLast returns an instant such that of the scheduled times in (after, upTo] the last n come after it, or
// all of them if they are fewer. Its cost grows with the logarithm of the interval, not with the times in it.
func (s *Schedule) beforeLast(after, upTo time.Time, n int64) time.Time {
	first, last, count := s.Between(after, upTo)
	if count <= n {
		return after
	}
	from := first.Unix()
	later := sort.Search(int(last.Unix()-from), func(i int) bool {
		_, _, left := s.Between(time.Unix(from+int64(i), 0), upTo)
		return left <= n
	})
	return time.Unix(from+int64(later), 0).UTC()
}
