package cronrunner

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// dayOfMonthRule is what the day-of-month field asks for. The items L, L-n, LW and nW, which mean what they do in
// Quartz, are other days in each month.
type dayOfMonthRule struct {
	on          uint64 // bit n: day n
	beforeLast  uint64 // bit n: n days before the last day; bit 0: the last day
	nearest     uint64 // bit n: the weekday, from Monday to Friday, that is nearest to day n, where there is a day n
	lastWeekday bool
}

// dayOfWeekRule is what the day-of-week field asks for. Days of the week count from Sunday 0.
type dayOfWeekRule struct {
	nth  uint64 // bit 7(n-1)+d: the n-th d of a month. A d that counts whenever it comes has the bits of all five n.
	last uint64 // bit d: the last d of a month
}

// eachWeek returns the nth of a set of days of the week.
func eachWeek(days uint64) uint64 { return days * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) }

// daysOf returns the days of a month that match, bit n for day n; bits that stand for no day of it may be set too.
func (r *dayOfMonthRule) daysOf(m month) uint64 {
	days := r.on | bits.Reverse64(r.beforeLast)>>(63-m.length)
	for n := lowestFrom(r.nearest, 1); n <= m.length; n = lowestFrom(r.nearest, n+1) {
		days |= 1 << m.nearestWeekday(n)
	}
	if r.lastWeekday {
		days |= 1 << m.nearestWeekday(m.length)
	}
	return days
}

// daysOf is as above. The n-th d of a month is in its n-th seven days.
func (r *dayOfWeekRule) daysOf(m month) uint64 {
	lastWeek := bitsUpTo(m.length) &^ bitsUpTo(m.length-7)
	return m.daysOfWeeks(r.nth) | m.daysOfWeeks(eachWeek(r.last))&lastWeek
}

// daysOfWeeks turns weeks of seven bits from Sunday into days. A week of the month begins with the weekday of its
// first day, so each seven bits are rotated.
func (m month) daysOfWeeks(weeks uint64) uint64 {
	untilSaturday := eachWeek(0x7f >> m.weekday)
	return (weeks>>m.weekday&untilSaturday | weeks<<(7-m.weekday)&^untilSaturday) << 1
}

// nearestWeekday returns the day from Monday to Friday that is nearest to a day of the month and lies in the month.
func (m month) nearestWeekday(day int64) int64 {
	const sunday, saturday = 0, 6
	switch (m.weekday + day - 1) % 7 {
	case saturday:
		if day == 1 {
			return 3
		}
		return day - 1
	case sunday:
		if day == m.length {
			return day - 2
		}
		return day + 1
	}
	return day
}

// read adds an item of the day-of-month field, and reports whether it is of the kind that is described above.
func (r *dayOfMonthRule) read(item string) (isRule bool, err error) {
	const (
		maxBeforeLast = 30
		known         = `write such as "L", "L-3", "LW" or "15W"`
	)
	if !strings.ContainsAny(item, "LW") {
		return false, nil
	}
	before, isBefore := strings.CutPrefix(item, "L-")
	near, isNear := strings.CutSuffix(item, "W")
	switch {
	case item == "L":
		r.beforeLast |= 1
		return true, nil
	case item == "LW":
		r.lastWeekday = true
		return true, nil
	case strings.Contains(item, "/"):
		return true, fmt.Errorf("a step cannot follow L or W; %s", known)
	case strings.Contains(strings.TrimPrefix(item, "L-"), "-"):
		return true, fmt.Errorf("a range cannot have L or W in it; %s", known)
	case isBefore && isNear || !isBefore && !isNear:
		return true, fmt.Errorf("%q is not a day; %s, and the last of a day of the week in its own field", item, known)
	}
	n, ok := digits(before)
	if isNear {
		n, ok = digits(near)
	}
	switch {
	case isBefore && (!ok || n < 1 || n > maxBeforeLast):
		return true, fmt.Errorf(`%q is not one of L-1 to L-%d, the days before the last; the last itself is "L"`, item, maxBeforeLast)
	case isBefore:
		r.beforeLast |= 1 << n
	case !ok || n < 1 || n > 31:
		return true, fmt.Errorf("%q is not one of 1W to 31W", item)
	default:
		r.nearest |= 1 << n
	}
	return true, nil
}

// read is as above, for the day-of-week field. day reads the number or the name of a day.
func (r *dayOfWeekRule) read(item string, day func(string) (int, error)) (isRule bool, err error) {
	const known = `write such as "5L" (the last Friday of the month) or "5#2" (the second)`
	base, nth, isNth := strings.Cut(item, "#")
	if !isNth {
		base = strings.TrimSuffix(item, "L")
	}
	switch {
	case !isNth && !strings.Contains(item, "L") || item == "LW" || strings.HasPrefix(item, "L-"):
		return false, nil
	case item == "L":
		return true, errors.New(`some read L alone as Saturday, some as a last day; write "SAT", "5L" for the last Friday ` +
			`of the month, or L in the day-of-month field for its last day`)
	case strings.Contains(item, "/"):
		return true, fmt.Errorf("a step cannot follow L or #; %s", known)
	case strings.Contains(item, "-"):
		return true, fmt.Errorf("a range cannot have L or # in it; %s, one item for each day", known)
	}
	d, err := day(base)
	if err != nil {
		return true, err
	}
	d %= 7
	if !isNth {
		r.last |= 1 << d
		return true, nil
	}
	n, ok := digits(nth)
	if !ok || n < 1 || n > 5 {
		return true, fmt.Errorf("%q after # is not one of 1-5, how often a month can have a day of the week", nth)
	}
	r.nth |= 1 << (7*(n-1) + d)
	return true, nil
}
