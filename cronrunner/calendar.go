package cronrunner

import (
	"math/bits"
	"time"
)

// localTimes is a set of local times, which are seconds since 1970-01-01T00:00:00 on the clocks of some zone. In each
// set, bit n stands for the value n.
type localTimes struct {
	second, minute, hour uint64
	month                uint64 // from 1
	dayOfMonth           dayOfMonthRule
	dayOfWeek            dayOfWeekRule
	eitherDay            bool // one of the two is enough; otherwise both must match
}

const secondsPerDay = 24 * 60 * 60

// firstFrom returns the first local time of the set that is not before local.
func (t *localTimes) firstFrom(local int64) int64 {
	day := floorDiv(local, secondsPerDay)
	if t.hasDay(day) {
		if second, ok := t.secondFrom(local - day*secondsPerDay); ok {
			return day*secondsPerDay + second
		}
	}
	second, _ := t.secondFrom(0)
	return t.dayFrom(day+1)*secondsPerDay + second
}

// lastUpTo returns the last local time of the set that is not after local.
func (t *localTimes) lastUpTo(local int64) int64 {
	day := floorDiv(local, secondsPerDay)
	if t.hasDay(day) {
		if second, ok := t.secondUpTo(local - day*secondsPerDay); ok {
			return day*secondsPerDay + second
		}
	}
	second, _ := t.secondUpTo(secondsPerDay - 1)
	return t.dayUpTo(day-1)*secondsPerDay + second
}

// count returns how many local times of the set lie in [from, to].
func (t *localTimes) count(from, to int64) int64 {
	if from > to {
		return 0
	}
	firstDay, lastDay := floorDiv(from, secondsPerDay), floorDiv(to, secondsPerDay)
	n := t.countDays(firstDay, lastDay) * t.countSeconds(secondsPerDay-1)
	if t.hasDay(firstDay) {
		n -= t.countSeconds(from - firstDay*secondsPerDay - 1)
	}
	if t.hasDay(lastDay) {
		n -= t.countSeconds(secondsPerDay-1) - t.countSeconds(to-lastDay*secondsPerDay)
	}
	return n
}

// secondFrom returns the first matching second of a day that is not before second.
func (t *localTimes) secondFrom(second int64) (int64, bool) {
	h, m, s := second/3600, second/60%60, second%60
	if hasBit(t.hour, h) {
		if hasBit(t.minute, m) {
			if s := lowestFrom(t.second, s); s < 64 {
				return h*3600 + m*60 + s, true
			}
		}
		if m := lowestFrom(t.minute, m+1); m < 64 {
			return h*3600 + m*60 + lowestFrom(t.second, 0), true
		}
	}
	if h := lowestFrom(t.hour, h+1); h < 64 {
		return h*3600 + lowestFrom(t.minute, 0)*60 + lowestFrom(t.second, 0), true
	}
	return 0, false
}

// secondUpTo returns the last matching second of a day that is not after second.
func (t *localTimes) secondUpTo(second int64) (int64, bool) {
	h, m, s := second/3600, second/60%60, second%60
	if hasBit(t.hour, h) {
		if hasBit(t.minute, m) {
			if s := highestUpTo(t.second, s); s >= 0 {
				return h*3600 + m*60 + s, true
			}
		}
		if m := highestUpTo(t.minute, m-1); m >= 0 {
			return h*3600 + m*60 + highestUpTo(t.second, 59), true
		}
	}
	if h := highestUpTo(t.hour, h-1); h >= 0 {
		return h*3600 + highestUpTo(t.minute, 59)*60 + highestUpTo(t.second, 59), true
	}
	return 0, false
}

// countSeconds returns how many seconds of a day match, up to and with second; none if that is negative.
func (t *localTimes) countSeconds(second int64) int64 {
	if second < 0 {
		return 0
	}
	h, m, s := second/3600, second/60%60, second%60
	n := countUpTo(t.hour, h-1) * countUpTo(t.minute, 59) * countUpTo(t.second, 59)
	if hasBit(t.hour, h) {
		n += countUpTo(t.minute, m-1) * countUpTo(t.second, 59)
		if hasBit(t.minute, m) {
			n += countUpTo(t.second, s)
		}
	}
	return n
}

// dayFrom returns the first matching day that is not before day. There is one within the forty years that can lie
// between two Februaries with a fifth Sunday, over a year such as 2100: parsing refuses a set without days, and
// nothing that a set can ask for is rarer.
func (t *localTimes) dayFrom(day int64) int64 {
	for m := monthOf(day); ; m = m.nextOf(t.month) {
		if d := lowestFrom(t.daysOf(m), max(day-m.zeroth, 1)); d < 64 {
			return m.zeroth + d
		}
	}
}

// dayUpTo returns the last matching day that is not after day.
func (t *localTimes) dayUpTo(day int64) int64 {
	for m := monthOf(day); ; m = monthOf(day) {
		if d := highestUpTo(t.daysOf(m), day-m.zeroth); d >= 0 {
			return m.zeroth + d
		}
		day = m.zeroth
	}
}

// countDays returns how many days in [from, to] match.
func (t *localTimes) countDays(from, to int64) int64 {
	n := int64(0)
	for m := monthOf(from); m.zeroth < to; m = m.next() {
		days := t.daysOf(m)
		n += countUpTo(days, min(to-m.zeroth, 31)) - countUpTo(days, max(from-m.zeroth, 1)-1)
	}
	return n
}

func (t *localTimes) hasDay(day int64) bool {
	m := monthOf(day)
	return hasBit(t.daysOf(m), day-m.zeroth)
}

// everFires tells whether a set has days at all. The 28 years that it looks at have every kind of year: with and
// without a leap day, beginning on each day of the week.
func (t *localTimes) everFires() bool {
	const newYear2000 = 10957 // days since 1970-01-01
	m := monthOf(newYear2000)
	for range 28 * 12 {
		if t.daysOf(m) != 0 {
			return true
		}
		m = m.next()
	}
	return false
}

// daysOf returns the matching days of a month, bit 1 for the first.
func (t *localTimes) daysOf(m month) uint64 {
	if !hasBit(t.month, m.number) {
		return 0
	}
	byDay, byWeekday := t.dayOfMonth.daysOf(m), t.dayOfWeek.daysOf(m)
	days := byDay & byWeekday
	if t.eitherDay {
		days = byDay | byWeekday
	}
	return days & bitsUpTo(m.length) &^ 1
}

// month is a month of the Gregorian calendar, with what a search through its days needs.
type month struct {
	year    int
	number  int64 // from January 1
	zeroth  int64 // the day before its first, as days since 1970-01-01
	length  int64
	weekday int64 // of its first day, from Sunday 0
}

func monthOf(day int64) month {
	year, number, dom := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return newMonth(year, int64(number), day-int64(dom))
}

func (m month) next() month {
	if m.number == 12 {
		return newMonth(m.year+1, 1, m.zeroth+m.length)
	}
	return newMonth(m.year, m.number+1, m.zeroth+m.length)
}

// nextOf returns the next month whose number is in a set. To step over the others is what makes rare days cheap.
func (m month) nextOf(numbers uint64) month {
	year, number := m.year, lowestFrom(numbers, m.number+1)
	if number > 12 {
		year, number = year+1, lowestFrom(numbers, 1)
	}
	first := time.Date(year, time.Month(number), 1, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
	return newMonth(year, number, first-1)
}

func newMonth(year int, number, zeroth int64) month {
	length := 30 + (number+number/8)&1
	if number == 2 {
		length = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			length = 29
		}
	}
	const thursday = 4 // 1970-01-01
	weekday := floorMod(zeroth+1+thursday, 7)
	return month{year: year, number: number, zeroth: zeroth, length: length, weekday: weekday}
}

// Sets of small numbers, bit n for the number n.

func hasBit(set uint64, n int64) bool { return set>>n&1 == 1 }

// lowestFrom returns the lowest member that is not below n, or 64.
func lowestFrom(set uint64, n int64) int64 { return int64(bits.TrailingZeros64(set >> n << n)) }

// highestUpTo returns the highest member that is not above n, or -1.
func highestUpTo(set uint64, n int64) int64 { return int64(bits.Len64(set&bitsUpTo(n))) - 1 }

// countUpTo returns how many members are not above n.
func countUpTo(set uint64, n int64) int64 { return int64(bits.OnesCount64(set & bitsUpTo(n))) }

// bitsUpTo returns the set of 0 to n; empty for -1.
func bitsUpTo(n int64) uint64 { return 1<<(n+1) - 1 }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

func floorMod(a, b int64) int64 { return (a%b + b) % b }
