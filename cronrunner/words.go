package cronrunner

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Words says in English when the schedule is due, such as "At 09:00, Monday to Friday, Asia/Shanghai". In it a weekday
// is a day from Monday to Friday. The zone is left out where the words are true in every zone.
//
// The words come from the times, not from the expression: "1-5" and "MON-FRI" read equally.
func (s *Schedule) Words() string {
	switch p := s.plan.(type) {
	case everyPlan:
		return p.words()
	case atPlan:
		return "Once, at " + time.Unix(int64(p), 0).UTC().Format(time.DateTime) + " UTC"
	case *wallTimes:
		return p.words(s.zone)
	}
	return s.expr
}

func (d everyPlan) words() string {
	seconds := int64(d)
	switch {
	case seconds%3600 == 0:
		return every(seconds/3600, "hour")
	case seconds%60 == 0 && seconds < 3600:
		return every(seconds/60, "minute")
	case seconds < 120:
		return every(seconds, "second")
	}
	var parts []string
	for _, part := range []struct {
		n    int64
		unit string
	}{{seconds / 3600, "hour"}, {seconds / 60 % 60, "minute"}, {seconds % 60, "second"}} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 "+part.unit)
		case part.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", part.n, part.unit))
		}
	}
	return "Every " + strings.Join(parts, " ")
}

const (
	onlyZero    = 1
	allMinutes  = 1<<60 - 1
	allHours    = 1<<24 - 1
	allDays     = 1<<32 - 2
	allMonths   = 1<<13 - 2
	allWeekdays = 1<<7 - 1
)

func (t *localTimes) words(zone string) string {
	days := t.dayWords()
	words := t.timeWords() + days
	// If all hours of all days are alike, a zone still matters to a minute: some are not whole hours off UTC.
	noMinute := t.minute == allMinutes || t.second == onlyZero && (t.minute == onlyZero || evenStep(t.minute) > 0)
	if t.hour == allHours && days == "" && (noMinute || zone == "UTC") {
		return words
	}
	return words + ", " + zone
}

// timeWords says at what times of a day.
func (t *localTimes) timeWords() string {
	const few, several = 4, 8 // times: to list in any case, and to list if nothing shorter can be said
	perDay := t.countSeconds(secondsPerDay - 1)
	noSeconds, hours := t.second == onlyZero, progressionOf(t.hour)
	secondStep, minuteStep := evenStep(t.second), evenStep(t.minute)
	switch {
	case perDay <= few:
		return t.listTimes()
	case noSeconds && t.minute == onlyZero && t.hour == allHours:
		return every(1, "hour")
	case noSeconds && t.minute == onlyZero && hours.step > 0 && hours.count > few:
		return every(hours.step, "hour") + t.fromFirstToLast()
	case noSeconds && minuteStep > 0:
		return every(minuteStep, "minute") + t.throughHours()
	case t.minute == allMinutes && secondStep > 0:
		return every(secondStep, "second") + t.throughHours()
	case perDay <= several && (hours.step != 1 || hours.count <= few):
		return t.listTimes()
	}

	ofMinutes := " of " + named("minute", t.minute, plainly) + " of " + t.hourWords()
	if t.minute == allMinutes {
		ofMinutes = " of every minute"
		if t.hour != allHours {
			ofMinutes += " of " + t.hourWords()
		}
	}
	switch {
	case noSeconds:
		return "At " + strings.TrimPrefix(ofMinutes, " of ")
	case secondStep > 0:
		return every(secondStep, "second") + " in " + strings.TrimPrefix(ofMinutes, " of ")
	}
	return "At " + named("second", t.second, plainly) + ofMinutes
}

func (t *localTimes) listTimes() string {
	var times []string
	for second, ok := t.secondFrom(0); ok; second, ok = t.secondFrom(second + 1) {
		times = append(times, t.clockTime(second))
	}
	return "At " + enumerate(times, "and")
}

// throughHours says in which hours a pace is kept that begins anew with every hour.
func (t *localTimes) throughHours() string {
	switch {
	case t.hour == allHours:
		return ""
	case progressionOf(t.hour).step == 1:
		return t.fromFirstToLast()
	}
	return " in " + t.hourWords()
}

func (t *localTimes) fromFirstToLast() string {
	first, _ := t.secondFrom(0)
	last, _ := t.secondUpTo(secondsPerDay - 1)
	return " from " + t.clockTime(first) + " to " + t.clockTime(last)
}

// clockTime writes a second of the day, without seconds if there are none in the set.
func (t *localTimes) clockTime(second int64) string {
	text := twoDigits(second/3600) + ":" + twoDigits(second/60%60)
	if t.second != onlyZero {
		text += ":" + twoDigits(second%60)
	}
	return text
}

func (t *localTimes) hourWords() string {
	hours := progressionOf(t.hour)
	switch {
	case t.hour == allHours:
		return "every hour"
	case hours.step == 1 && hours.count > 2:
		return "each hour from " + twoDigits(hours.first) + " to " + twoDigits(hours.last)
	}
	return named("hour", t.hour, twoDigits)
}

// dayWords says on what days; nothing if on all.
func (t *localTimes) dayWords() string {
	// A field that has every day says nothing by itself. Beside it, the other field counts if both must match, and
	// does not if one is enough. Without such a field one is enough, since both must match with a star only.
	dayOfMonth, dayOfWeek := t.dayOfMonth, t.dayOfWeek
	monthly, weekly := t.dayOfMonth.on == allDays, t.dayOfWeek.nth == eachWeek(allWeekdays)
	if monthly || t.eitherDay && weekly {
		dayOfMonth = dayOfMonthRule{}
	}
	if weekly || t.eitherDay && monthly {
		dayOfWeek = dayOfWeekRule{}
	}

	days, weekdays, nthWeekdays := dayOfMonth.words(), dayOfWeek.weeklyWords(), dayOfWeek.monthlyWords()
	ofMonth, inMonths := " of the month", t.inMonths()
	if weekdays == "" && (days == "") != (nthWeekdays == "") {
		ofMonth, inMonths = t.ofMonths(), ""
	}
	var clauses []string
	if days != "" {
		clauses = append(clauses, "on "+days+ofMonth)
	}
	if weekdays != "" {
		clauses = append(clauses, "on "+weekdays)
	}
	if nthWeekdays != "" {
		clauses = append(clauses, "on "+nthWeekdays+ofMonth)
	}
	switch {
	case len(clauses) == 0:
		return inMonths
	case len(clauses) == 1 && strings.Contains(weekdays, " to "):
		return ", " + weekdays + inMonths
	}
	return " " + enumerate(clauses, "or") + inMonths // one is enough
}

func (t *localTimes) ofMonths() string {
	months := progressionOf(t.month)
	switch {
	case t.month == allMonths:
		return " of the month"
	case months.step == 1 && months.count > 2:
		return " of each month from " + monthName(months.first) + " to " + monthName(months.last)
	}
	return " of " + list(t.month, monthName)
}

func (t *localTimes) inMonths() string {
	months := progressionOf(t.month)
	switch {
	case t.month == allMonths:
		return ""
	case months.step == 1 && months.count > 2:
		return ", from " + monthName(months.first) + " to " + monthName(months.last)
	}
	return ", in " + list(t.month, monthName)
}

// words names the days of a month that match; nothing if none does.
func (r *dayOfMonthRule) words() string {
	var days []string
	if r.on != 0 {
		days = append(days, named("day", r.on, plainly))
	}
	if hasBit(r.beforeLast, 0) {
		days = append(days, "the last day")
	}
	if hasBit(r.beforeLast, 1) {
		days = append(days, "the day before the last day")
	}
	for n := lowestFrom(r.beforeLast, 2); n < 64; n = lowestFrom(r.beforeLast, n+1) {
		days = append(days, "the "+ordinal(n)+" day before the last day")
	}
	if r.lastWeekday {
		days = append(days, "the last weekday")
	}
	for n := lowestFrom(r.nearest, 1); n < 64; n = lowestFrom(r.nearest, n+1) {
		days = append(days, "the weekday nearest to day "+plainly(n))
	}
	return enumerate(days, "and")
}

// weeklyWords names the days of the week that match whenever they come.
func (r *dayOfWeekRule) weeklyWords() string { return list(fromMonday(r.weekly()), weekdayName) }

// monthlyWords names those that match once in a month or more, but not always.
func (r *dayOfWeekRule) monthlyWords() string {
	var days []string
	add := func(which string, set uint64) {
		set = fromMonday(set &^ r.weekly())
		for d := lowestFrom(set, 0); d < 64; d = lowestFrom(set, d+1) {
			days = append(days, "the "+which+" "+weekdayName(d))
		}
	}
	for n := int64(1); n <= 5; n++ {
		add(ordinal(n), r.nth>>(7*(n-1))&allWeekdays)
	}
	add("last", r.last)
	return enumerate(days, "and")
}

// weekly returns the days of the week of which all five in a month match.
func (r *dayOfWeekRule) weekly() uint64 {
	return r.nth & (r.nth >> 7) & (r.nth >> 14) & (r.nth >> 21) & (r.nth >> 28)
}

// fromMonday turns a set of days of the week from Sunday 0 into one from Monday 0, as people tell a week.
func fromMonday(days uint64) uint64 { return days>>1 | days&1<<6 }

func weekdayName(fromMonday int64) string { return time.Weekday((fromMonday + 1) % 7).String() }

func monthName(n int64) string { return time.Month(n).String() }

func plainly(n int64) string { return strconv.FormatInt(n, 10) }

func twoDigits(n int64) string { return fmt.Sprintf("%02d", n) }

func ordinal(n int64) string {
	suffix := "th"
	switch {
	case n/10 == 1:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return plainly(n) + suffix
}

func every(n int64, unit string) string {
	if n == 1 {
		return "Every " + unit
	}
	return fmt.Sprintf("Every %d %ss", n, unit)
}

// progression is a set whose members follow each other at one step; 0 if there is no such step.
type progression struct{ first, last, step, count int64 }

func progressionOf(set uint64) progression {
	p := progression{first: lowestFrom(set, 0), last: highestUpTo(set, 63), step: 1, count: int64(bits.OnesCount64(set))}
	if p.count < 2 {
		return p
	}
	p.step = lowestFrom(set, p.first+1) - p.first
	members := uint64(0)
	for n := p.first; n <= p.last; n += p.step {
		members |= 1 << n
	}
	if members != set {
		p.step = 0
	}
	return p
}

// evenStep returns the step of a set of minutes or seconds that is kept through the change of the hour or minute; 0 if
// it has none. So */25 has none, and neither has 5/15, which says more than a step does.
func evenStep(set uint64) int64 {
	p := progressionOf(set)
	if p.count < 2 || p.first != 0 || p.last+p.step != 60 {
		return 0
	}
	return p.step
}

// named calls the members of a set by their unit.
func named(unit string, set uint64, name func(int64) string) string {
	p := progressionOf(set)
	switch {
	case p.count == 1:
		return unit + " " + name(p.first)
	case p.step > 1 && p.count > 6:
		return fmt.Sprintf("every %s %s from %s to %s", ordinal(p.step), unit, name(p.first), name(p.last))
	}
	return unit + "s " + list(set, name)
}

// list enumerates a set; three members or more that follow each other are a range.
func list(set uint64, name func(int64) string) string {
	var items []string
	for first := lowestFrom(set, 0); first < 64; first = lowestFrom(set, first) {
		last := lowestFrom(^set, first) - 1
		if last-first < 2 {
			last = first
			items = append(items, name(first))
		} else {
			items = append(items, name(first)+" to "+name(last))
		}
		first = last + 1
	}
	return enumerate(items, "and")
}

func enumerate(items []string, link string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " " + link + " " + items[last]
}
