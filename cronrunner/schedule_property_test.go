package cronrunner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// trickyZones have changes at midnight, by half an hour, by a day, by decree, during Ramadan, before 1970 by seconds,
// or none at all.
var trickyZones = []string{
	"UTC", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Monrovia", "America/Asuncion",
	"America/Caracas", "America/Chicago", "America/Havana", "America/Juneau", "America/New_York", "America/Nuuk",
	"America/Phoenix", "America/Santiago", "America/Sao_Paulo", "America/Scoresbysund", "America/St_Johns",
	"Antarctica/Casey", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Dhaka", "Asia/Gaza", "Asia/Kathmandu",
	"Asia/Kolkata", "Asia/Manila", "Asia/Pyongyang", "Asia/Shanghai", "Asia/Tehran", "Asia/Tokyo",
	"Atlantic/Azores", "Australia/Lord_Howe", "Australia/Sydney", "Etc/GMT-14", "Europe/Berlin", "Europe/Dublin",
	"Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Europe/Moscow", "Europe/Volgograd", "Pacific/Apia",
	"Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Fiji", "Pacific/Kiritimati",
	"Pacific/Kwajalein", "Pacific/Norfolk", "Pacific/Tongatapu",
}

// slowCron is an expression as plain sets: what the reference reads, and the tests write as text.
type slowCron struct {
	second, minute, hour, dom, month, dow map[int]bool
	domRules, dowRules                    []dayTest
	domStar, dowStar                      bool
}

// dayTest is an item with L, W or #, asked about one day.
type dayTest func(day time.Time) bool

func (c slowCron) everyHour() bool { return len(c.hour) == 24 }

func (c slowCron) matches(wall time.Time) bool {
	return c.second[wall.Second()] && c.minute[wall.Minute()] && c.hour[wall.Hour()] && c.matchesDay(wall)
}

func (c slowCron) matchesDay(wall time.Time) bool {
	dom, dow := c.dom[wall.Day()], c.dow[int(wall.Weekday())]
	for _, rule := range c.domRules {
		dom = dom || rule(wall)
	}
	for _, rule := range c.dowRules {
		dow = dow || rule(wall)
	}
	if c.domStar || c.dowStar {
		return c.month[int(wall.Month())] && dom && dow
	}
	return c.month[int(wall.Month())] && (dom || dow)
}

// L-n, and L for 0.
func isBeforeLast(n int) dayTest {
	return func(day time.Time) bool {
		last := day.AddDate(0, 0, n)
		return last.Month() == day.Month() && last.AddDate(0, 0, 1).Month() != day.Month()
	}
}

// LW: from Monday to Friday, and no later day of the month is.
func isLastWeekday(day time.Time) bool {
	for later := day.AddDate(0, 0, 1); later.Month() == day.Month(); later = later.AddDate(0, 0, 1) {
		if isMondayToFriday(later) {
			return false
		}
	}
	return isMondayToFriday(day)
}

// nW: from Monday to Friday, and no other day of the month that is lies nearer to day n.
func isNearestWeekday(n int) dayTest {
	distance := func(day time.Time) int { return max(day.Day()-n, n-day.Day()) }
	return func(day time.Time) bool {
		if time.Date(day.Year(), day.Month(), n, 0, 0, 0, 0, time.UTC).Month() != day.Month() {
			return false
		}
		first := day.AddDate(0, 0, 1-day.Day())
		for other := first; other.Month() == day.Month(); other = other.AddDate(0, 0, 1) {
			if isMondayToFriday(other) && distance(other) < distance(day) {
				return false
			}
		}
		return isMondayToFriday(day)
	}
}

func isMondayToFriday(day time.Time) bool {
	return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
}

// dL: a week later it is another month.
func isLastOf(d int) dayTest {
	return func(day time.Time) bool {
		return day.Weekday() == time.Weekday(d%7) && day.AddDate(0, 0, 7).Month() != day.Month()
	}
}

// d#n: going back week by week, the n-th is the first of the month.
func isNthOf(d, n int) dayTest {
	return func(day time.Time) bool {
		weeks := 0
		for earlier := day; earlier.Month() == day.Month(); earlier = earlier.AddDate(0, 0, -7) {
			weeks++
		}
		return day.Weekday() == time.Weekday(d%7) && weeks == n
	}
}

// due is the reference: it lives through (from, to] tick by tick, writing down every local time that the clocks have
// shown or skipped. A tick divides a minute and the offsets. It starts 25 hours early, since no clocks were ever set back
// by more than 24.
func (c slowCron) due(location *time.Location, from, to time.Time, tick time.Duration) []time.Time {
	var times []time.Time
	run := func(at time.Time) {
		if at.After(from) && !at.After(to) && (len(times) == 0 || at.After(times[len(times)-1])) {
			times = append(times, at)
		}
	}
	var within []time.Duration // what a tick has of the seconds
	for s := range int(tick / time.Second) {
		if tick < time.Minute || c.second[s] {
			within = append(within, time.Duration(s)*time.Second)
		}
	}
	begin := from.Add(-25 * time.Hour).Truncate(time.Minute)
	oldest := begin.Add(-24 * time.Hour) // the earliest that any clocks can show
	past := make([]bool, to.Sub(oldest)/tick+24*time.Hour/tick)
	before := wallClock(begin, location)
	for at := begin; !at.After(to); at = at.Add(tick) {
		wall := wallClock(at, location)
		if !wall.Equal(wall.Truncate(tick)) {
			panic("the tick does not divide the offset")
		}
		for skipped := before.Add(tick); skipped.Before(wall); skipped = skipped.Add(tick) {
			for _, s := range within {
				if !c.everyHour() && !past[skipped.Sub(oldest)/tick] && c.matches(skipped.Add(s)) {
					run(at)
				}
			}
			past[skipped.Sub(oldest)/tick] = true
		}
		for _, s := range within {
			if (c.everyHour() || !past[wall.Sub(oldest)/tick]) && c.matches(wall.Add(s)) {
				run(at.Add(s))
			}
		}
		past[wall.Sub(oldest)/tick] = true
		before = wall
	}
	return times
}

// wallClock returns what the clocks show, as if it were UTC.
func wallClock(at time.Time, location *time.Location) time.Time {
	_, offset := at.In(location).Zone()
	return at.Add(time.Duration(offset) * time.Second)
}

// drawField draws one field as text and as the set that it means.
func drawField(t *rapid.T, label string, low, high int, kinds ...string) (text string, set map[int]bool) {
	set = map[int]bool{}
	add := func(from, to, step int) {
		for n := from; n <= to; n += step {
			set[n] = true
		}
	}
	value := rapid.IntRange(low, high)
	switch rapid.SampledFrom(kinds).Draw(t, label) {
	case "star":
		add(low, high, 1)
		return "*", set
	case "full":
		add(low, high, 1)
		return fmt.Sprintf("%d-%d", low, high), set
	case "one":
		n := value.Draw(t, label)
		add(n, n, 1)
		return fmt.Sprint(n), set
	case "range":
		from := value.Draw(t, label)
		to := rapid.IntRange(from, high).Draw(t, label)
		add(from, to, 1)
		return fmt.Sprintf("%d-%d", from, to), set
	case "step":
		step := rapid.IntRange(2, high-low).Draw(t, label)
		add(low, high, step)
		return fmt.Sprintf("*/%d", step), set
	case "range step":
		from := rapid.IntRange(low, high-2).Draw(t, label)
		to := rapid.IntRange(from+2, high).Draw(t, label)
		step := rapid.IntRange(2, to-from).Draw(t, label)
		add(from, to, step)
		return fmt.Sprintf("%d-%d/%d", from, to, step), set
	case "list":
		var items []string
		for _, n := range rapid.SliceOfN(value, 2, 5).Draw(t, label) {
			items = append(items, fmt.Sprint(n))
			set[n] = true
		}
		return strings.Join(items, ","), set
	case "night": // most changes of the clocks are then
		from := rapid.IntRange(0, 4).Draw(t, label)
		add(from, from+1, 1)
		return fmt.Sprintf("%d,%d", from, from+1), set
	}
	panic("unknown kind")
}

func drawCron(t *rapid.T) (string, slowCron) {
	var c slowCron
	texts := make([]string, 6)
	texts[0], c.second = "0", map[int]bool{0: true}
	if rapid.Bool().Draw(t, "seconds") {
		texts[0], c.second = drawField(t, "second", 0, 59, "one", "list", "range step")
	}
	texts[1], c.minute = drawField(t, "minute", 0, 59, "star", "one", "range", "step", "range step", "list")
	texts[2], c.hour = drawField(t, "hour", 0, 23, "star", "full", "one", "range", "step", "list", "night", "night")
	texts[3], c.dom = drawField(t, "day of month", 1, 31, "star", "star", "star", "one", "range", "step", "list", "full")
	texts[4], c.month = drawField(t, "month", 1, 12, "star", "star", "star", "star", "one", "range", "list")
	texts[5], c.dow = drawField(t, "day of week", 0, 7, "star", "star", "star", "one", "range", "range step", "list")
	texts[3], c.dom, c.domRules = drawRules(t, texts[3], c.dom, drawDayOfMonthRule)
	texts[5], c.dow, c.dowRules = drawRules(t, texts[5], c.dow, drawDayOfWeekRule)
	if c.dow[7] {
		c.dow[0] = true
	}
	c.domStar, c.dowStar = texts[3] == "*", texts[5] == "*"
	return strings.Join(texts, " "), c
}

// drawRules puts items with L, W or # beside those of a day field, or in their place.
func drawRules(t *rapid.T, text string, set map[int]bool, draw func(*rapid.T) (string, dayTest)) (string, map[int]bool, []dayTest) {
	items := []string{text}
	switch rapid.SampledFrom([]string{"none", "none", "beside", "alone"}).Draw(t, "rules") {
	case "none":
		return text, set, nil
	case "alone":
		items, set = nil, nil
	case "beside":
		if text == "*" {
			return text, set, nil
		}
	}
	var rules []dayTest
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		item, rule := draw(t)
		at := rapid.IntRange(0, len(items)).Draw(t, "place")
		items, rules = slices.Insert(items, at, item), append(rules, rule)
	}
	return strings.Join(items, ","), set, rules
}

func drawDayOfMonthRule(t *rapid.T) (string, dayTest) {
	switch rapid.SampledFrom([]string{"L", "L-n", "LW", "nW"}).Draw(t, "rule") {
	case "L":
		return "L", isBeforeLast(0)
	case "L-n":
		n := rapid.IntRange(1, 30).Draw(t, "n")
		return fmt.Sprintf("L-%d", n), isBeforeLast(n)
	case "LW":
		return "LW", isLastWeekday
	}
	n := rapid.IntRange(1, 31).Draw(t, "n")
	return fmt.Sprintf("%dW", n), isNearestWeekday(n)
}

func drawDayOfWeekRule(t *rapid.T) (string, dayTest) {
	d := rapid.IntRange(0, 7).Draw(t, "d")
	if rapid.Bool().Draw(t, "last") {
		return fmt.Sprintf("%dL", d), isLastOf(d)
	}
	n := rapid.IntRange(1, 5).Draw(t, "n")
	return fmt.Sprintf("%d#%d", d, n), isNthOf(d, n)
}

// drawSchedule draws a schedule that is accepted; the only others drawn are those that never fire.
func drawSchedule(t *rapid.T) (*Schedule, slowCron, *time.Location) {
	expr, cron := drawCron(t)
	location, err := time.LoadLocation(rapid.SampledFrom(trickyZones).Draw(t, "zone"))
	require.NoError(t, err)
	s, err := ParseSchedule(expr, location.String())
	if err != nil {
		require.ErrorContains(t, err, "never fires", expr)
		require.False(t, cron.everFires(), expr)
		t.Skip("never fires")
	}
	require.True(t, cron.everFires(), expr)
	t.Logf("%q in %s", expr, location)
	return s, cron, location
}

// everFires looks at every day until the calendar of 2000 comes again.
func (c slowCron) everFires() bool {
	for day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2400; day = day.AddDate(0, 0, 1) {
		if c.month[int(day.Month())] && c.matchesDay(day) {
			return true
		}
	}
	return false
}

// drawInstant draws an instant of the years 2006 to 2045, or one at which the zone's clocks change then.
func drawInstant(t *rapid.T, location *time.Location) time.Time {
	at := time.Unix(rapid.Int64Range(1_136_073_600, 2_398_377_600).Draw(t, "instant"), 0).In(location)
	if _, change := at.ZoneBounds(); !change.IsZero() && change.After(at) && rapid.IntRange(0, 3).Draw(t, "at a change") > 0 {
		return change.UTC()
	}
	return at.UTC()
}

func TestPropertyAgreesWithReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, cron, location := drawSchedule(t)
		middle := drawInstant(t, location)
		from := middle.Add(-time.Duration(rapid.IntRange(0, 100_000).Draw(t, "seconds before")) * time.Second)
		to := middle.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "seconds after")) * time.Second)
		requireAgrees(t, s, cron.due(location, from, to, time.Minute), from, to)
	})
}

// requireAgrees compares Next and Between with the scheduled times that the reference has found in (from, to].
func requireAgrees(t require.TestingT, s *Schedule, want []time.Time, from, to time.Time) {
	var got []time.Time
	for at := s.Next(from); !at.After(to); at = s.Next(at) {
		got = append(got, at)
	}
	require.Equal(t, want, got)

	first, last, count := s.Between(from, to)
	require.Equal(t, int64(len(want)), count)
	if count > 0 {
		require.Equal(t, want[0], first)
		require.Equal(t, want[len(want)-1], last)
	}
}

// Old changes have offsets with seconds, and days skipped or repeated.
func TestOldChangesAgreeWithReference(t *testing.T) {
	t.Parallel()
	every := func(from, to, step int) map[int]bool {
		set := map[int]bool{}
		for n := from; n <= to; n += step {
			set[n] = true
		}
		return set
	}
	nights := slowCron{
		second: every(0, 59, 20), minute: every(0, 59, 7), hour: every(0, 22, 1), dom: every(1, 31, 1),
		month: every(1, 12, 1), dow: every(0, 6, 1), domStar: true, dowStar: true,
	}
	allDay := nights
	allDay.hour = every(0, 23, 1)
	for _, tt := range []struct {
		zone, day string
		tick      time.Duration
	}{
		{"Africa/Monrovia", "1972-01-07", 30 * time.Second},
		{"America/Metlakatla", "1867-10-19", 6 * time.Second},
		{"Asia/Manila", "1844-12-31", 4 * time.Second},
		{"Asia/Kolkata", "1906-01-01", 2 * time.Second},
		{"Europe/Dublin", "1916-10-01", 3 * time.Second},
		{"Pacific/Apia", "1892-07-04", 4 * time.Second},
		{"Pacific/Kwajalein", "1993-08-21", time.Minute},
	} {
		t.Run(tt.zone, func(t *testing.T) {
			t.Parallel()
			location, err := time.LoadLocation(tt.zone)
			require.NoError(t, err)
			from := mustTime(t, tt.day+"T00:00:00Z").Add(-12 * time.Hour)
			to := from.Add(48 * time.Hour)
			s := mustSchedule(t, "*/20 */7 0-22 * * *", tt.zone)
			requireAgrees(t, s, nights.due(location, from, to, tt.tick), from, to)
			s = mustSchedule(t, "*/20 */7 * * * *", tt.zone)
			requireAgrees(t, s, allDay.due(location, from, to, tt.tick), from, to)
		})
	}
}

func TestPropertyNextGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, cron, location := drawSchedule(t)
		at := drawInstant(t, location).Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "nanoseconds")))
		for range 20 {
			next := s.Next(at)
			require.True(t, next.After(at), "%s then %s", at, next)
			require.Zero(t, next.Nanosecond())
			require.Equal(t, time.UTC, next.Location())
			require.True(t, s.Next(next.Add(-time.Nanosecond)).Equal(next))
			if cron.everyHour() {
				require.True(t, cron.matches(wallClock(next, location)))
			}
			at = next
		}
	})
}

func TestPropertyBetweenCountsNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _, location := drawSchedule(t)
		from := drawInstant(t, location)
		to, n := from, rapid.IntRange(1, 1000).Draw(t, "scheduled times")
		for i := range n {
			next := s.Next(to)
			if next.IsZero() { // past the year 9999: a rare one, some hundred times
				n = i
				break
			}
			to = next
		}
		first, last, count := s.Between(from, to)
		require.Equal(t, []any{s.Next(from), to, int64(n)}, []any{first, last, count})

		_, before, count := s.Between(from, to.Add(-time.Second))
		require.Equal(t, int64(n-1), count)
		require.True(t, count == 0 || s.Next(before).Equal(to))
	})
}

func TestPropertyBetweenAddsUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _, location := drawSchedule(t)
		a := drawInstant(t, location)
		b := a.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "seconds")) * time.Second)
		c := b.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "seconds")) * time.Second)
		_, _, ab := s.Between(a, b)
		_, _, bc := s.Between(b, c)
		_, _, ac := s.Between(a, c)
		require.Equal(t, ac, ab+bc)
	})
}

func TestPropertyEvery(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(maxEvery/time.Second)).Draw(t, "seconds")) * time.Second
		s := mustScheduleRapid(t, "@every "+d.String())
		at := time.Unix(rapid.Int64Range(-1e10, 1e11).Draw(t, "instant"), 0)
		next := s.Next(at)
		require.True(t, next.After(at) && !next.After(at.Add(d)))
		require.Zero(t, next.Unix()%int64(d/time.Second))
		require.Equal(t, s.String(), mustScheduleRapid(t, s.String()).String())
	})
}

func mustScheduleRapid(t *rapid.T, expr string) *Schedule {
	s, err := ParseSchedule(expr, "")
	require.NoError(t, err)
	return s
}
