package cronrunner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"* * * * *":                     "Every minute",
		"* * * * * *":                   "Every second",
		"*/1 0-23 * * *":                "Every minute",
		"*/15 * * * *":                  "Every 15 minutes",
		"0,30 * * * *":                  "Every 30 minutes",
		"*/20 * * * * *":                "Every 20 seconds",
		"0 * * * *":                     "Every hour",
		"@hourly":                       "Every hour",
		"5 * * * *":                     "At minute 5 of every hour",
		"*/25 * * * *":                  "At minutes 0, 25 and 50 of every hour",
		"5/15 * * * *":                  "At minutes 5, 20, 35 and 50 of every hour",
		"20,40 * * * *":                 "At minutes 20 and 40 of every hour",
		"0,20,30,40 * * * *":            "At minutes 0, 20, 30 and 40 of every hour",
		"0,15,30 * * * *":               "At minutes 0, 15 and 30 of every hour",
		"1-59/2 * * * *":                "At every 2nd minute from 1 to 59 of every hour",
		"0-4,10,50 * * * *":             "At minutes 0 to 4, 10 and 50 of every hour",
		"5 * * * * *":                   "At second 5 of every minute",
		"5,25,45 * * * * *":             "At seconds 5, 25 and 45 of every minute",
		"1-59/3 * * * * *":              "At every 3rd second from 1 to 58 of every minute",
		"5,7 1,2 * * * *":               "At seconds 5 and 7 of minutes 1 and 2 of every hour",
		"* 5 * * * *":                   "Every second in minute 5 of every hour",
		"*/30 5-7 * * * *":              "Every 30 seconds in minutes 5 to 7 of every hour",
		"5 */15 * * * *":                "At second 5 of minutes 0, 15, 30 and 45 of every hour",
		"0 0 * * *":                     "At 00:00, UTC",
		"@daily":                        "At 00:00, UTC",
		"@midnight":                     "At 00:00, UTC",
		"0 9,21 * * *":                  "At 09:00 and 21:00, UTC",
		"0,30 9,21 * * *":               "At 09:00, 09:30, 21:00 and 21:30, UTC",
		"30 0 9,21 * * *":               "At 09:00:30 and 21:00:30, UTC",
		"0 1,2,5,9,13 * * *":            "At 01:00, 02:00, 05:00, 09:00 and 13:00, UTC",
		"0 */6 * * *":                   "At 00:00, 06:00, 12:00 and 18:00, UTC",
		"30 */4 * * *":                  "At 00:30, 04:30, 08:30, 12:30, 16:30 and 20:30, UTC",
		"0 */2 * * *":                   "Every 2 hours from 00:00 to 22:00, UTC",
		"0 */5 * * *":                   "Every 5 hours from 00:00 to 20:00, UTC",
		"0 9-17 * * *":                  "Every hour from 09:00 to 17:00, UTC",
		"0 0-22 * * *":                  "Every hour from 00:00 to 22:00, UTC",
		"0 9-11 * * *":                  "At 09:00, 10:00 and 11:00, UTC",
		"0 0-12,14 * * *":               "At minute 0 of hours 00 to 12 and 14, UTC",
		"30 9-17 * * *":                 "At minute 30 of each hour from 09 to 17, UTC",
		"30 9-13 * * *":                 "At minute 30 of each hour from 09 to 13, UTC",
		"30 1-23/2 * * *":               "At minute 30 of every 2nd hour from 01 to 23, UTC",
		"3,9 1,4,7,8,13 * * *":          "At minutes 3 and 9 of hours 01, 04, 07, 08 and 13, UTC",
		"0-20 9 * * *":                  "At minutes 0 to 20 of hour 09, UTC",
		"* 9 * * *":                     "Every minute from 09:00 to 09:59, UTC",
		"*/10 9 * * *":                  "Every 10 minutes from 09:00 to 09:50, UTC",
		"*/15 9-17 * * *":               "Every 15 minutes from 09:00 to 17:45, UTC",
		"*/15 9,12 * * *":               "Every 15 minutes in hours 09 and 12, UTC",
		"*/30 */2 * * *":                "Every 30 minutes in every 2nd hour from 00 to 22, UTC",
		"*/20 * 9-17 * * *":             "Every 20 seconds from 09:00:00 to 17:59:40, UTC",
		"* * 9,12 * * *":                "Every second in hours 09 and 12, UTC",
		"5 * 9 * * *":                   "At second 5 of every minute of hour 09, UTC",
		"*/20 5 9-17 * * *":             "Every 20 seconds in minute 5 of each hour from 09 to 17, UTC",
		"7,9 0 9-17 * * *":              "At seconds 7 and 9 of minute 0 of each hour from 09 to 17, UTC",
		"0 9 * * 1-5":                   "At 09:00, Monday to Friday, UTC",
		"0 9 * * MON-FRI":               "At 09:00, Monday to Friday, UTC",
		"0 0 * * 0":                     "At 00:00 on Sunday, UTC",
		"0 0 * * 7":                     "At 00:00 on Sunday, UTC",
		"@weekly":                       "At 00:00 on Sunday, UTC",
		"0 0 * * 0,6":                   "At 00:00 on Saturday and Sunday, UTC",
		"0 0 * * 5-7":                   "At 00:00, Friday to Sunday, UTC",
		"0 0 * * sun-tue":               "At 00:00 on Monday, Tuesday and Sunday, UTC",
		"0 0 * * */2":                   "At 00:00 on Tuesday, Thursday, Saturday and Sunday, UTC",
		"0 0 * * 1-3,7":                 "At 00:00, Monday to Wednesday and Sunday, UTC",
		"*/15 * * * 1-5":                "Every 15 minutes, Monday to Friday, UTC",
		"0 * * * 1":                     "Every hour on Monday, UTC",
		"30 9-17 * * MON-FRI":           "At minute 30 of each hour from 09 to 17, Monday to Friday, UTC",
		"0 0 1 * *":                     "At 00:00 on day 1 of the month, UTC",
		"@monthly":                      "At 00:00 on day 1 of the month, UTC",
		"0 0 1,15 * ?":                  "At 00:00 on days 1 and 15 of the month, UTC",
		"0 0 */2 * *":                   "At 00:00 on every 2nd day from 1 to 31 of the month, UTC",
		"0 0 1-7 * *":                   "At 00:00 on days 1 to 7 of the month, UTC",
		"0 0 1 1 *":                     "At 00:00 on day 1 of January, UTC",
		"@yearly":                       "At 00:00 on day 1 of January, UTC",
		"@annually":                     "At 00:00 on day 1 of January, UTC",
		"0 0 1 */3 *":                   "At 00:00 on day 1 of January, April, July and October, UTC",
		"0 0 1 1-3 *":                   "At 00:00 on day 1 of each month from January to March, UTC",
		"15,45 59 23 31 12 ?":           "At 23:59:15 and 23:59:45 on day 31 of December, UTC",
		"0 0 * 1 *":                     "At 00:00, in January, UTC",
		"0 0 * 1-3,12 *":                "At 00:00, in January to March and December, UTC",
		"* * * 6-8 *":                   "Every minute, from June to August, UTC",
		"0 0 * JAN 1":                   "At 00:00 on Monday, in January, UTC",
		"0 0 13 * 5":                    "At 00:00 on day 13 of the month or on Friday, UTC",
		"0 0 13 2 5":                    "At 00:00 on day 13 of the month or on Friday, in February, UTC",
		"0 0 13 * */1":                  "At 00:00 on day 13 of the month, UTC",
		"0 0 */2 * 1-5":                 "At 00:00 on every 2nd day from 1 to 31 of the month or on Monday to Friday, UTC",
		"0 0 1-31 * 1":                  "At 00:00, UTC",
		"0 0 13 * 0-6":                  "At 00:00, UTC",
		"0 0 13 5 0-6":                  "At 00:00, in May, UTC",
		"0 0 L * *":                     "At 00:00 on the last day of the month, UTC",
		"0 0 L 2 *":                     "At 00:00 on the last day of February, UTC",
		"0 0 L-1 * *":                   "At 00:00 on the day before the last day of the month, UTC",
		"0 0 L-3 * *":                   "At 00:00 on the 3rd day before the last day of the month, UTC",
		"0 0 L-11,L-22 * *":             "At 00:00 on the 11th day before the last day and the 22nd day before the last day of the month, UTC",
		"0 0 LW * *":                    "At 00:00 on the last weekday of the month, UTC",
		"0 0 15W * *":                   "At 00:00 on the weekday nearest to day 15 of the month, UTC",
		"0 0 L,15,1 * *":                "At 00:00 on days 1 and 15 and the last day of the month, UTC",
		"0 0 * * 5L":                    "At 00:00 on the last Friday of the month, UTC",
		"0 0 * * FRI#2":                 "At 00:00 on the 2nd Friday of the month, UTC",
		"0 0 * 1,3 7#1,7#3":             "At 00:00 on the 1st Sunday and the 3rd Sunday of January and March, UTC",
		"0 0 * * 1,5L":                  "At 00:00 on Monday or on the last Friday of the month, UTC",
		"0 0 * 2 1,5L":                  "At 00:00 on Monday or on the last Friday of the month, in February, UTC",
		"0 0 * * 5,5L,5#2":              "At 00:00 on Friday, UTC",
		"0 0 * * 1#1,1#2,1#3,1#4,1#5":   "At 00:00 on Monday, UTC",
		"0 0 L * 5#2":                   "At 00:00 on the last day of the month or on the 2nd Friday of the month, UTC",
		"0 0 13 * 5,1L":                 "At 00:00 on day 13 of the month, on Friday or on the last Monday of the month, UTC",
		"0 0 L 6-8 5#2":                 "At 00:00 on the last day of the month or on the 2nd Friday of the month, from June to August, UTC",
		"@every 1s":                     "Every second",
		"@every 90s":                    "Every 90 seconds",
		"@every 60s":                    "Every minute",
		"@every 150s":                   "Every 2 minutes 30 seconds",
		"@every 15m":                    "Every 15 minutes",
		"@every 90m":                    "Every 1 hour 30 minutes",
		"@every 1h":                     "Every hour",
		"@every 1h0m1s":                 "Every 1 hour 1 second",
		"@every 2h1m5s":                 "Every 2 hours 1 minute 5 seconds",
		"@every 24h":                    "Every 24 hours",
		"@at 2026-12-24T18:00:00+08:00": "Once, at 2026-12-24 10:00:00 UTC",
	} {
		require.Equal(t, want, mustSchedule(t, expr, "").Words(), "schedule %q", expr)
	}
}

// The zone is said where the words would mean something else in another.
func TestWordsSayTheZone(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"0 9 * * 1-5":               "At 09:00, Monday to Friday, Asia/Kolkata",
		"* * * * 1":                 "Every minute on Monday, Asia/Kolkata",
		"* * * 1 *":                 "Every minute, in January, Asia/Kolkata",
		"0 * * * *":                 "Every hour",
		"*/15 * * * *":              "Every 15 minutes",
		"5 * * * * *":               "At second 5 of every minute",
		"5 * * * *":                 "At minute 5 of every hour, Asia/Kolkata",
		"* 5 * * * *":               "Every second in minute 5 of every hour, Asia/Kolkata",
		"30 */15 * * * *":           "At second 30 of minutes 0, 15, 30 and 45 of every hour, Asia/Kolkata",
		"@every 7h":                 "Every 7 hours",
		"@at 2026-12-24T10:00:00Z":  "Once, at 2026-12-24 10:00:00 UTC",
		"TZ=Asia/Kolkata 0 0 L * *": "At 00:00 on the last day of the month, Asia/Kolkata",
	} {
		require.Equal(t, want, mustSchedule(t, expr, "Asia/Kolkata").Words(), "schedule %q", expr)
	}
}

// The words, read back by somebody who knows nothing of the expression, mean the same times and days.
func TestPropertyWordsAreTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, cron, location := drawSchedule(t)
		words, saysZone := strings.CutSuffix(s.Words(), ", "+location.String())
		times, isDay := readWords(t, words)
		for second := range secondsPerDay {
			if times[second] != (cron.hour[second/3600] && cron.minute[second/60%60] && cron.second[second%60]) {
				require.Fail(t, words, "second %d of the day", second)
			}
		}
		year, everyDay := rapid.IntRange(2000, 2027).Draw(t, "year"), true
		for day := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < year+2; day = day.AddDate(0, 0, 1) {
			everyDay = everyDay && cron.matchesDay(day)
			if isDay(day) != cron.matchesDay(day) {
				require.Fail(t, words, day.Format(time.DateOnly))
			}
		}
		if !saysZone {
			require.True(t, everyDay && cron.everyHour(), words)
			require.True(t, location == time.UTC || !strings.Contains(words, "of every hour"), words)
		}
	})
}

// readWords returns the seconds of a day and a test of a day that the words name.
func readWords(t require.TestingT, words string) (map[int]bool, dayTest) {
	parts := regexp.MustCompile(`^(.*?)(?: on (.*?)|, ([A-Z].*?))?(?:, (?:in|from) (.*))?$`).FindStringSubmatch(words)
	months := map[int]bool{}
	if parts[4] != "" {
		months = readNames(t, parts[4], monthNames)
	}
	var tests []dayTest
	if parts[2]+parts[3] != "" {
		for _, clause := range regexp.MustCompile(`(?:,| or) on `).Split(parts[2]+parts[3], -1) {
			tests = append(tests, readDays(t, clause))
		}
	}
	return readTimes(t, parts[1]), func(day time.Time) bool {
		matches := tests == nil
		for _, test := range tests {
			matches = matches || test(day)
		}
		return matches && (len(months) == 0 || months[int(day.Month())])
	}
}

func readTimes(t require.TestingT, words string) map[int]bool {
	times := map[int]bool{}
	if regexp.MustCompile(`^At \d\d:`).MatchString(words) {
		for _, item := range splitList(strings.TrimPrefix(words, "At ")) {
			times[readClock(t, item)] = true
		}
		return times
	}
	pace := regexp.MustCompile(`^Every (?:(\d+) )?(second|minute|hour)s?(?: from (\S+) to (\S+)| in (.*))?$`).FindStringSubmatch(words)
	if pace != nil {
		step := map[string]int{"second": 1, "minute": 60, "hour": 3600}[pace[2]]
		if pace[1] != "" {
			n, err := strconv.Atoi(pace[1])
			require.NoError(t, err)
			step *= n
		}
		from, to := 0, secondsPerDay-step
		if pace[3] != "" {
			from, to = readClock(t, pace[3]), readClock(t, pace[4])
		}
		second := from
		for ; second <= to; second += step {
			times[second] = true
		}
		require.Equal(t, to+step, second, "%s: does not end there", words)
		if pace[5] != "" {
			within := readUnits(t, pace[5], "second")
			for second := range times {
				if !within[second] {
					delete(times, second)
				}
			}
		}
		return times
	}
	return readUnits(t, strings.TrimPrefix(words, "At "), "")
}

// readUnits reads "seconds … of minutes … of hours …". Of the smaller units that are not named, 0 is meant; of whole
// units, everything in them.
func readUnits(t require.TestingT, words, whole string) map[int]bool {
	units := map[string]map[int]bool{"second": {0: true}, "minute": {0: true}, "hour": {}}
	for of := range strings.SplitSeq(words, " of ") {
		unit := regexp.MustCompile(`second|minute|hour`).FindString(of)
		size := map[string]int{"second": 60, "minute": 60, "hour": 24}[unit]
		units[unit] = readNumbers(t, of, unit, size)
	}
	if whole != "" {
		units["second"] = readNumbers(t, "every second", "second", 60)
		if !strings.Contains(words, "minute") {
			units["minute"] = readNumbers(t, "every minute", "minute", 60)
		}
		if len(units["hour"]) == 0 {
			units["hour"] = readNumbers(t, "every hour", "hour", 24)
		}
	}
	if len(units["hour"]) == 0 { // "of every minute"
		units["hour"] = readNumbers(t, "every hour", "hour", 24)
	}
	times := map[int]bool{}
	for h := range units["hour"] {
		for m := range units["minute"] {
			for s := range units["second"] {
				times[h*3600+m*60+s] = true
			}
		}
	}
	return times
}

// readNumbers reads "minute 5", "minutes 1, 3 and 7 to 9", "every minute", "every 2nd minute from 1 to 59" and
// "each hour from 09 to 17".
func readNumbers(t require.TestingT, words, unit string, size int) map[int]bool {
	numbers := map[int]bool{}
	add := func(from, to, step string) {
		first, err := strconv.Atoi(from)
		require.NoError(t, err)
		last, err := strconv.Atoi(to)
		require.NoError(t, err)
		by, err := strconv.Atoi(step)
		require.NoError(t, err)
		for ; first <= last; first += by {
			numbers[first] = true
		}
		require.Equal(t, last+by, first, "%s: does not end there", words)
	}
	if words == "every "+unit {
		add("0", strconv.Itoa(size-1), "1")
		return numbers
	}
	if each := regexp.MustCompile(`^(?:each|every (\d+)..) ` + unit + ` from (\d+) to (\d+)$`).FindStringSubmatch(words); each != nil {
		add(each[2], each[3], max(each[1], "1"))
		return numbers
	}
	numbersOnly, found := strings.CutPrefix(words, unit)
	require.True(t, found, words)
	for _, item := range splitList(strings.TrimPrefix(numbersOnly, "s")) {
		from, to, isRange := strings.Cut(strings.TrimSpace(item), " to ")
		if !isRange {
			to = from
		}
		add(from, to, "1")
	}
	return numbers
}

var (
	monthNames = []string{
		"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
	}
	weekdayNames = []string{"", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
)

// readNames reads names and ranges of names; the first stands at 1.
func readNames(t require.TestingT, words string, names []string) map[int]bool {
	set := map[int]bool{}
	for _, item := range splitList(words) {
		from, to, isRange := strings.Cut(item, " to ")
		if !isRange {
			to = from
		}
		require.Contains(t, names, from)
		require.Contains(t, names, to)
		for n := slices.Index(names, from); n <= slices.Index(names, to); n++ {
			set[n] = true
		}
	}
	return set
}

// readDays reads what follows one "on".
func readDays(t require.TestingT, words string) dayTest {
	i := strings.LastIndex(words, " of ")
	if i < 0 {
		weekdays := readNames(t, words, weekdayNames)
		return func(day time.Time) bool { return weekdays[(int(day.Weekday())+6)%7+1] }
	}
	words, inMonths := words[:i], strings.TrimPrefix(words[i+len(" of "):], "each month from ")
	months := map[int]bool{}
	if inMonths != "the month" {
		months = readNames(t, inMonths, monthNames)
	}
	tests := []dayTest{}
	if j := strings.Index(words+" the ", "the "); j > 0 {
		days := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(words[:min(j, len(words))]), " and"), ",")
		numbers := readNumbers(t, days, "day", 0)
		tests = append(tests, func(day time.Time) bool { return numbers[day.Day()] })
		words = words[min(j, len(words)):]
	}
	for _, item := range splitList(words) {
		if item != "" {
			tests = append(tests, readRule(t, item))
		}
	}
	return func(day time.Time) bool {
		return (len(months) == 0 || months[int(day.Month())]) &&
			slices.ContainsFunc(tests, func(test dayTest) bool { return test(day) })
	}
}

func readRule(t require.TestingT, item string) dayTest {
	rule := regexp.MustCompile(`^the (?:(last|\d)(?:st|nd|rd|th)? ([A-Z]\w+)|(?:(\d+).. )?(day before the )?(last day)|last (weekday)|weekday nearest to day (\d+))$`).
		FindStringSubmatch(item)
	require.NotNil(t, rule, item)
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	weekday := slices.Index(weekdayNames, rule[2])
	switch {
	case rule[1] == "last":
		return isLastOf(weekday)
	case rule[1] != "":
		return isNthOf(weekday, number(rule[1]))
	case rule[3] != "":
		return isBeforeLast(number(rule[3]))
	case rule[4] != "":
		return isBeforeLast(1)
	case rule[5] != "":
		return isBeforeLast(0)
	case rule[6] != "":
		return isLastWeekday
	}
	return isNearestWeekday(number(rule[7]))
}

func splitList(words string) []string {
	return strings.Split(strings.ReplaceAll(words, " and ", ", "), ", ")
}

func readClock(t require.TestingT, text string) int {
	layout := time.TimeOnly
	if len(text) == len("15:04") {
		layout = "15:04"
	}
	at, err := time.Parse(layout, text)
	require.NoError(t, err)
	return at.Hour()*3600 + at.Minute()*60 + at.Second()
}

// The same sets, written in another way, read equally.
func TestPropertyWordsComeFromTheSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expr, cron := drawCron(t)
		s, err := ParseSchedule(expr, "")
		if err != nil {
			t.Skip("never fires")
		}
		fields := strings.Fields(expr)
		for i, set := range []map[int]bool{cron.second, cron.minute, cron.hour, cron.dom, cron.month, cron.dow} {
			if fields[i] != "*" {
				fields[i] = rewrite(t, fields[i], set, cronFields[i])
			}
		}
		again, err := ParseSchedule(strings.Join(fields, " "), "")
		require.NoError(t, err, fields)
		require.Equal(t, s.Words(), again.Words(), fields)
	})
}

// rewrite lists the members of a field's set, by number or by name and in any order, beside its items with L, W or #.
func rewrite(t *rapid.T, field string, set map[int]bool, f cronField) string {
	items := regexp.MustCompile(`[^,]*[LW#][^,]*`).FindAllString(field, -1)
	for n := range set {
		item := fmt.Sprint(n)
		if len(f.names) > 0 && n%7 == 1 {
			item = f.names[n-f.min]
		}
		items = append(items, item)
	}
	slices.Sort(items)
	return strings.Join(rapid.Permutation(items).Draw(t, "items"), ",")
}
