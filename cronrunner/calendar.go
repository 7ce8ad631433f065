package cronrunner

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	daySeconds = 24 * 60 * 60
	// horizon is how many years ahead a day is looked for: 29 February can be eight years away.
	horizon = 9
	// starBit is set by robfig/cron in a field that has a star.
	starBit = 1 << 63
)

// calendar is the fields of a cron expression, as sets of bits. It knows readings (see stretch.go), not
// instants, so its days all have 24 hours.
type calendar struct {
	second, minute, hour, dom, month, dow uint64
	perDay                                int64 // readings on a day that matches
}

func newCalendar(s *cron.SpecSchedule) calendar {
	c := calendar{second: s.Second, minute: s.Minute, hour: s.Hour, dom: s.Dom, month: s.Month, dow: s.Dow}
	c.perDay = c.ofDay(daySeconds)
	return c
}

// everyHour reports whether the hour field covers all 24 hours, however it is written.
func (c *calendar) everyHour() bool { return c.hour&^starBit == 1<<24-1 }

// matchesDay is robfig/cron's rule, which is that of every cron: day of month and day of week must both
// match if one of them has a star, otherwise one of them is enough.
func (c *calendar) matchesDay(day int, weekday time.Weekday) bool {
	dom, dow := c.dom>>day&1 != 0, c.dow>>weekday&1 != 0
	if c.dom&starBit != 0 || c.dow&starBit != 0 {
		return dom && dow
	}
	return dom || dow
}

// next is the first matching reading after r.
func (c *calendar) next(r int64) (int64, bool) {
	r++
	t := time.Unix(r, 0).UTC()
	year, month, day := t.Date()
	midnight := r - int64(t.Hour()*3600+t.Minute()*60+t.Second())
	if c.month>>month&1 != 0 && c.matchesDay(day, t.Weekday()) {
		if at, ok := c.timeOfDay(t.Hour(), t.Minute(), t.Second()); ok {
			return midnight + at, true
		}
	}
	first, _ := c.timeOfDay(0, 0, 0)
	for last := year + horizon; year <= last; {
		if c.month>>month&1 != 0 {
			weekday := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()
			for d, n := day+1, daysIn(year, month); d <= n; d++ {
				if c.matchesDay(d, (weekday+time.Weekday(d-day))%7) {
					return time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() + first, true
				}
			}
		}
		day = 0
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return 0, false
}

// timeOfDay is the first matching time of day not before h:m:s, in seconds.
func (c *calendar) timeOfDay(h, m, s int) (int64, bool) {
	if c.hour>>h&1 != 0 {
		if c.minute>>m&1 != 0 {
			if s := atLeast(c.second, s); s < 60 {
				return int64(h*3600 + m*60 + s), true
			}
		}
		if m := atLeast(c.minute, m+1); m < 60 {
			return int64(h*3600 + m*60 + atLeast(c.second, 0)), true
		}
	}
	if h := atLeast(c.hour, h+1); h < 24 {
		return int64(h*3600 + atLeast(c.minute, 0)*60 + atLeast(c.second, 0)), true
	}
	return 0, false
}

// atLeast is the smallest member of set that is not less than n; 63 or more when there is none.
func atLeast(set uint64, n int) int { return bits.TrailingZeros64(set >> n << n) }

// count is how many readings in (after, upTo] match.
func (c *calendar) count(after, upTo int64) int64 {
	if upTo <= after {
		return 0
	}
	return c.before(after+1, upTo+1)
}

// before is how many readings in [from, to) match: those of the days in between, and of the broken days
// at both ends.
func (c *calendar) before(from, to int64) int64 {
	first, last := floorDiv(from, daySeconds), floorDiv(to, daySeconds)
	n := c.perDay * c.days(first, last)
	if c.days(first, first+1) == 1 {
		n -= c.ofDay(from - first*daySeconds)
	}
	if c.days(last, last+1) == 1 {
		n += c.ofDay(to - last*daySeconds)
	}
	return n
}

// days is how many of the days [from, to), counted from the epoch, match.
func (c *calendar) days(from, to int64) int64 {
	var n int64
	for d := from; d < to; {
		t := time.Unix(d*daySeconds, 0).UTC()
		year, month, day := t.Date()
		inMonth := daysIn(year, month)
		for ; day <= inMonth && d < to; day, d = day+1, d+1 {
			if c.month>>month&1 != 0 && c.matchesDay(day, time.Weekday(floorMod(d+4, 7))) { // the epoch was a Thursday
				n++
			}
		}
	}
	return n
}

// ofDay is how many times of day before the given second match.
func (c *calendar) ofDay(second int64) int64 {
	h, m, s := int(second/3600), int(second/60%60), int(second%60)
	below := func(set uint64, n int) int64 { return int64(bits.OnesCount64(set &^ starBit & (1<<n - 1))) }
	seconds, minutes := below(c.second, 60), below(c.minute, 60)
	n := below(c.hour, h) * minutes * seconds
	if h < 24 && c.hour>>h&1 != 0 {
		n += below(c.minute, m) * seconds
		if c.minute>>m&1 != 0 {
			n += below(c.second, s)
		}
	}
	return n
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
