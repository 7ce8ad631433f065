package cronrunner

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

func mustSchedule(tb testing.TB, expr, zone string) *Schedule {
	tb.Helper()
	s, err := ParseSchedule(expr, zone)
	require.NoError(tb, err, "schedule %q in %q", expr, zone)
	return s
}

func mustTime(tb testing.TB, rfc3339 string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, rfc3339)
	require.NoError(tb, err)
	return at
}

// upcoming returns the next n scheduled times as the zone's clocks show them.
func upcoming(tb testing.TB, s *Schedule, after time.Time, n int) []string {
	tb.Helper()
	location, err := time.LoadLocation(s.Zone())
	require.NoError(tb, err)
	var times []string
	for range n {
		after = s.Next(after)
		if after.IsZero() {
			return append(times, "none")
		}
		times = append(times, after.In(location).Format(time.RFC3339))
	}
	return times
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expr, zone, after string
		want              []string
	}{
		"five fields": {
			"30 9 * * *", "", "2026-11-30T09:29:59Z",
			[]string{"2026-11-30T09:30:00Z", "2026-12-01T09:30:00Z"},
		},
		"six fields": {
			"15,45 59 23 31 12 *", "", "2026-12-31T23:59:15Z",
			[]string{"2026-12-31T23:59:45Z", "2027-12-31T23:59:15Z"},
		},
		"strictly after": {
			"* * * * * *", "", "2026-11-30T09:30:00Z",
			[]string{"2026-11-30T09:30:01Z", "2026-11-30T09:30:02Z"},
		},
		"a timer some milliseconds early": {
			"0 8 * * *", "", "2026-11-30T07:59:59.998Z",
			[]string{"2026-11-30T08:00:00Z", "2026-12-01T08:00:00Z"},
		},
		"a timer some milliseconds late": {
			"0 8 * * *", "", "2026-11-30T08:00:00.002Z",
			[]string{"2026-12-01T08:00:00Z"},
		},
		"in a zone": {
			"0 9 * * *", "Asia/Shanghai", "2026-11-30T00:00:00Z",
			[]string{"2026-11-30T09:00:00+08:00", "2026-12-01T09:00:00+08:00"},
		},
		"zone in the expression": {
			"CRON_TZ=Asia/Kolkata 0 9 * * *", "", "2026-11-30T00:00:00Z",
			[]string{"2026-11-30T09:00:00+05:30"},
		},
		"Sunday as 7":                 {"* * * * 7", "", "2026-11-30T12:00:00Z", []string{"2026-12-06T00:00:00Z", "2026-12-06T00:01:00Z"}},
		"Sunday as 0":                 {"* * * * 0", "", "2026-11-30T12:00:00Z", []string{"2026-12-06T00:00:00Z"}},
		"Friday to Sunday":            {"0 0 * * 5-7", "", "2026-11-30T12:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z", "2026-12-11T00:00:00Z"}},
		"Friday to Sunday by name":    {"0 0 * * fri-sun", "", "2026-12-04T12:00:00Z", []string{"2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z", "2026-12-11T00:00:00Z"}},
		"Sunday to Sunday":            {"0 0 * * sun-sun", "", "2026-12-04T12:00:00Z", []string{"2026-12-06T00:00:00Z", "2026-12-13T00:00:00Z"}},
		"Saturday to 7":               {"0 0 * * sat-7", "", "2026-12-04T12:00:00Z", []string{"2026-12-05T00:00:00Z", "2026-12-06T00:00:00Z", "2026-12-12T00:00:00Z"}},
		"every other day up to 7":     {"0 0 * * 1-7/2", "", "2026-12-04T12:00:00Z", []string{"2026-12-06T00:00:00Z", "2026-12-07T00:00:00Z", "2026-12-09T00:00:00Z"}},
		"either day field":            {"0 0 13 * 5", "", "2026-11-30T00:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z", "2026-12-18T00:00:00Z"}},
		"a step is no star":           {"0 0 */15 * 1", "", "2026-11-30T00:00:00Z", []string{"2026-12-01T00:00:00Z", "2026-12-07T00:00:00Z", "2026-12-14T00:00:00Z", "2026-12-16T00:00:00Z"}},
		"a full range is no star":     {"0 0 1-31 * 1", "", "2026-11-30T00:00:00Z", []string{"2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"}},
		"a question mark is a star":   {"0 0 ? * 1", "", "2026-11-30T00:00:00Z", []string{"2026-12-07T00:00:00Z", "2026-12-14T00:00:00Z"}},
		"29 February":                 {"0 0 29 2 *", "", "2026-11-30T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		"29 February around 2100":     {"0 0 29 2 *", "", "2096-02-29T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		"29 February at every hour":   {"0 * 29 2 *", "Europe/Berlin", "2096-02-29T22:00:00Z", []string{"2104-02-29T00:00:00+01:00"}},
		"29 February or a Monday":     {"0 0 29 2 1", "", "2027-12-30T00:00:00Z", []string{"2028-02-07T00:00:00Z", "2028-02-14T00:00:00Z", "2028-02-21T00:00:00Z", "2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z"}},
		"no 30 February but a Monday": {"0 0 30 2 1", "", "2028-02-27T00:00:00Z", []string{"2028-02-28T00:00:00Z", "2029-02-05T00:00:00Z"}},
		"31st of long months":         {"0 0 31 * *", "", "2026-12-31T00:00:00Z", []string{"2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z"}},
		"hourly":                      {"@hourly", "", "2026-11-30T09:30:00Z", []string{"2026-11-30T10:00:00Z"}},
		"daily":                       {"@daily", "Asia/Tokyo", "2026-11-30T09:30:00Z", []string{"2026-12-01T00:00:00+09:00"}},
		"midnight":                    {"@midnight", "", "2026-11-30T09:30:00Z", []string{"2026-12-01T00:00:00Z"}},
		"weekly":                      {"@weekly", "", "2026-11-30T09:30:00Z", []string{"2026-12-06T00:00:00Z"}},
		"monthly":                     {"@monthly", "", "2026-11-30T09:30:00Z", []string{"2026-12-01T00:00:00Z"}},
		"yearly":                      {"@yearly", "", "2026-11-30T09:30:00Z", []string{"2027-01-01T00:00:00Z"}},
		"annually":                    {"@annually", "", "2026-11-30T09:30:00Z", []string{"2027-01-01T00:00:00Z"}},
		"every, from the epoch":       {"@every 7h", "", "1970-01-01T00:00:00Z", []string{"1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z"}},
		"every, before the epoch":     {"@every 7h", "", "1969-12-31T16:59:59Z", []string{"1969-12-31T17:00:00Z", "1970-01-01T00:00:00Z"}},
		"every, whoever asks when":    {"@every 90m", "Asia/Kolkata", "2026-11-30T00:00:01Z", []string{"2026-11-30T07:00:00+05:30", "2026-11-30T08:30:00+05:30"}},
		"at":                          {"@at 2026-11-30T09:00:00+08:00", "", "2026-11-30T00:59:59.9Z", []string{"2026-11-30T01:00:00Z", "none"}},
		"at, in the past":             {"@at 2026-11-30T09:00:00+08:00", "", "2026-11-30T01:00:00Z", []string{"none"}},
		"from the zero time":          {"0 0 1 1 *", "", "0001-01-01T00:00:00Z", []string{"0002-01-01T00:00:00Z"}},
		"to the end of time":          {"0 0 1 1 *", "", "9998-06-01T00:00:00Z", []string{"9999-01-01T00:00:00Z", "none"}},
		"every hour to the end":       {"* * * * *", "Asia/Tokyo", "9999-12-31T23:58:00Z", []string{"10000-01-01T08:59:00+09:00", "none"}},
		"every to the end of time":    {"@every 1h", "", "9999-12-31T22:30:00Z", []string{"9999-12-31T23:00:00Z", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustSchedule(t, tt.expr, tt.zone)
			require.Equal(t, tt.want, upcoming(t, s, mustTime(t, tt.after), len(tt.want)))
		})
	}
}

// Days that each month's calendar has to tell. 2026 begins on a Thursday.
func TestDayRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		days, after string // day of month, month, day of week
		want        []string
	}{
		"last day":                        {"L * *", "2026-01-15", []string{"2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"}},
		"last day of February":            {"L 2 *", "2027-01-01", []string{"2027-02-28", "2028-02-29", "2029-02-28"}},
		"three days before the last":      {"L-3 * *", "2026-01-01", []string{"2026-01-28", "2026-02-25", "2026-03-28"}},
		"29 before the last":              {"L-29 * *", "2026-01-01", []string{"2026-01-02", "2026-03-02", "2026-04-01", "2026-05-02"}},
		"30 before the last":              {"L-30 * *", "2026-01-01", []string{"2026-03-01", "2026-05-01", "2026-07-01"}},
		"28 before the last of February":  {"L-28 2 *", "2026-01-01", []string{"2028-02-01", "2032-02-01"}},
		"last weekday":                    {"LW * *", "2026-01-01", []string{"2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30", "2026-05-29"}},
		"nearest weekday":                 {"15W * *", "2026-06-01", []string{"2026-06-15", "2026-07-15", "2026-08-14", "2026-09-15", "2026-10-15", "2026-11-16"}},
		"nearest weekday, the 1st":        {"1W * *", "2026-01-02", []string{"2026-02-02", "2026-03-02", "2026-04-01", "2026-05-01", "2026-06-01", "2026-07-01", "2026-08-03"}},
		"nearest weekday, the 2nd":        {"2W * *", "2026-05-01", []string{"2026-06-02", "2026-07-02", "2026-08-03"}},
		"nearest weekday, the 31st":       {"31W * *", "2026-01-01", []string{"2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31"}},
		"nearest weekday, the 30th":       {"30W * *", "2026-01-01", []string{"2026-01-30", "2026-03-30", "2026-04-30", "2026-05-29"}},
		"nearest weekday, 29 February":    {"29W 2 *", "2026-01-01", []string{"2028-02-29", "2032-02-27", "2036-02-29"}},
		"last Friday":                     {"* * 5L", "2026-01-01", []string{"2026-01-30", "2026-02-27", "2026-03-27"}},
		"last Saturday, on the last day":  {"* * satl", "2026-01-01", []string{"2026-01-31", "2026-02-28", "2026-03-28"}},
		"last Sunday as 0":                {"* * 0L", "2026-01-01", []string{"2026-01-25", "2026-02-22", "2026-03-29"}},
		"last Sunday as 7":                {"* * 7L", "2026-01-01", []string{"2026-01-25", "2026-02-22", "2026-03-29"}},
		"first Thursday, on the first":    {"* * 4#1", "2025-12-31", []string{"2026-01-01", "2026-02-05", "2026-03-05"}},
		"second Friday":                   {"* * 5#2", "2026-01-01", []string{"2026-01-09", "2026-02-13", "2026-03-13"}},
		"first Sunday as 7":               {"* * 7#1", "2026-01-01", []string{"2026-01-04", "2026-02-01", "2026-03-01"}},
		"Thanksgiving":                    {"* 11 thu#4", "2026-01-01", []string{"2026-11-26", "2027-11-25", "2028-11-23"}},
		"fifth Friday":                    {"* * 5#5", "2026-01-01", []string{"2026-01-30", "2026-05-29", "2026-07-31"}},
		"all five Mondays are Mondays":    {"* * 1#1,1#2,1#3,1#4,1#5", "2026-01-01", []string{"2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26", "2026-02-02"}},
		"in a list":                       {"L,15,1W * *", "2026-01-01", []string{"2026-01-15", "2026-01-31", "2026-02-02", "2026-02-15", "2026-02-28"}},
		"beside a range":                  {"1-2,l-1 * *", "2026-01-01", []string{"2026-01-02", "2026-01-30", "2026-02-01", "2026-02-02", "2026-02-27"}},
		"beside a step":                   {"*/15,L * *", "2026-01-01", []string{"2026-01-16", "2026-01-31", "2026-02-01", "2026-02-16", "2026-02-28"}},
		"beside days of the week":         {"* * 0,5L,1#1", "2026-01-20", []string{"2026-01-25", "2026-01-30", "2026-02-01", "2026-02-02"}},
		"beside a range that ends with 7": {"* * 6-7,3#1", "2026-01-30", []string{"2026-01-31", "2026-02-01", "2026-02-04", "2026-02-07"}},
		"a question mark":                 {"? * 5L", "2026-01-01", []string{"2026-01-30"}},
		"either day field":                {"L * 5#2", "2026-01-01", []string{"2026-01-09", "2026-01-31", "2026-02-13", "2026-02-28"}},
		"either, one without rules":       {"13 * 5L", "2026-01-01", []string{"2026-01-13", "2026-01-30", "2026-02-13", "2026-02-27"}},
		"either, one that never comes":    {"30W 2 5L", "2026-01-01", []string{"2026-02-27", "2027-02-26"}},
		"either of two rare ones":         {"29 2 SUN#5", "2026-01-01", []string{"2028-02-29", "2032-02-29", "2036-02-29"}},
		"fifth Sunday of February":        {"* 2 SUN#5", "2026-01-01", []string{"2032-02-29", "2060-02-29", "2088-02-29", "2128-02-29"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, day := range tt.want {
				want = append(want, day+"T00:00:00Z")
			}
			s := mustSchedule(t, "0 0 "+tt.days, "")
			require.Equal(t, want, upcoming(t, s, mustTime(t, tt.after+"T00:00:00Z"), len(want)))
		})
	}
}

// Nothing is rarer than a fifth weekday of February: the longest that anyone waits is 40 years.
func TestRarestSchedules(t *testing.T) {
	t.Parallel()
	longest := time.Duration(0)
	for d := range 7 {
		s := mustSchedule(t, fmt.Sprintf("0 0 * 2 %d#5", d), "America/New_York")
		at, end := s.Next(mustTime(t, "2000-01-01T00:00:00Z")), mustTime(t, "2400-01-01T00:00:00Z")
		for at.Before(end) {
			next := s.Next(at)
			longest = max(longest, next.Sub(at))
			at = next
		}
	}
	require.Equal(t, 40, int(longest/(365*24*time.Hour)))
}

// Each row lists the next scheduled times around a change of the clocks.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expr, zone, after string
		want              []string
	}{
		"repeated hour, once": {
			"30 1 * * *", "America/New_York", "2026-10-31T00:00:00-04:00",
			[]string{"2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		},
		"repeated hour, asked between the two": {
			"30 1 * * *", "America/New_York", "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-02T01:30:00-05:00"},
		},
		"repeated hour, several": {
			"*/20 1 * * *", "America/New_York", "2026-11-01T01:15:00-04:00",
			[]string{"2026-11-01T01:20:00-04:00", "2026-11-01T01:40:00-04:00", "2026-11-02T01:00:00-05:00"},
		},
		"repeated hour, its end": {
			"0 1,2 * * *", "America/New_York", "2026-11-01T00:15:00-04:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00", "2026-11-02T01:00:00-05:00"},
		},
		"repeated hour in Europe": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"repeated hour, every hour": {
			"30 * * * *", "America/New_York", "2026-11-01T00:15:00-04:00",
			[]string{"2026-11-01T00:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"},
		},
		"all 24 hours in a range are every hour": {
			"30 0-23 * * *", "America/New_York", "2026-11-01T01:15:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"},
		},
		"23 hours are not every hour": {
			"30 0-22 * * *", "America/New_York", "2026-11-01T01:15:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T02:30:00-05:00"},
		},
		"skipped hour": {
			"30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		},
		"skipped hour, its start": {
			"0 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		},
		"skipped hour, merged": {
			"*/10 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
		},
		"skipped hour, merged with what is due there": {
			"0,30 2-4 * * *", "America/New_York", "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-08T04:00:00-04:00"},
		},
		"skipped hour, not due there": {
			"45 2,3 * * *", "America/New_York", "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:45:00-04:00"},
		},
		"skipped hour, asked one second before": {
			"30 2 * * *", "America/New_York", "2026-03-08T01:59:59-05:00",
			[]string{"2026-03-08T03:00:00-04:00"},
		},
		"skipped hour, asked at the jump": {
			"30 2 * * *", "America/New_York", "2026-03-08T03:00:00-04:00",
			[]string{"2026-03-09T02:30:00-04:00"},
		},
		"skipped hour, every hour": {
			"*/30 * * * *", "America/New_York", "2026-03-08T01:15:00-05:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"},
		},
		"no midnight": {
			"30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:30:00-02:00"},
		},
		"two midnights": {
			"30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00-02:00",
			[]string{"2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"},
		},
		"two midnights, every hour, one day": {
			"30 * 17 2 *", "America/Sao_Paulo", "2018-02-17T22:45:00-02:00",
			[]string{"2018-02-17T23:30:00-02:00", "2018-02-17T23:30:00-03:00", "2019-02-17T00:30:00-03:00"},
		},
		"half an hour skipped": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"half an hour repeated": {
			"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		"half an hour repeated, every hour": {
			"*/15 * * * *", "Australia/Lord_Howe", "2026-04-05T01:35:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30", "2026-04-05T02:00:00+10:30"},
		},
		"a skipped day": {
			"0 9 * * *", "Pacific/Apia", "2011-12-28T12:00:00-10:00",
			[]string{"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00", "2012-01-01T09:00:00+14:00"},
		},
		"a skipped day, once a month": {
			"0 9 30 * *", "Pacific/Apia", "2011-12-28T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-30T09:00:00+14:00"},
		},
		"a skipped day, every hour": {
			"0 * * * *", "Pacific/Apia", "2011-12-29T22:30:00-10:00",
			[]string{"2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T01:00:00+14:00"},
		},
		"a repeated day": {
			"0 9 * * *", "Pacific/Apia", "1892-07-03T08:00:00+12:33",
			[]string{"1892-07-03T09:00:00+12:33", "1892-07-04T09:00:00+12:33", "1892-07-05T09:00:00-11:26"},
		},
		"a repeated day, asked at the end of the second": {
			"0 9 * * *", "Pacific/Apia", "1892-07-04T08:00:00-11:26",
			[]string{"1892-07-05T09:00:00-11:26"},
		},
		"offset with seconds": {
			"0 12 * * *", "Africa/Monrovia", "1972-01-05T00:00:00Z",
			[]string{"1972-01-05T12:00:00-00:44", "1972-01-06T12:00:00-00:44", "1972-01-07T12:00:00Z"},
		},
		"offset with seconds, skipped": {
			"30 0 * * *", "Africa/Monrovia", "1972-01-06T12:00:00Z",
			[]string{"1972-01-07T00:44:30Z", "1972-01-08T00:30:00Z"},
		},
		"past the tables of the zone file": {
			"30 2 * * *", "Europe/Berlin", "2060-03-27T12:00:00+01:00",
			[]string{"2060-03-28T03:00:00+02:00", "2060-03-29T02:30:00+02:00"},
		},
		// time.ZoneBounds is wrong there: go.dev/issue/81583.
		"the last day of a leap year past the tables": {
			"30 2 * * *", "Europe/Warsaw", "2040-12-30T12:00:00Z",
			[]string{"2040-12-31T02:30:00+01:00", "2041-01-01T02:30:00+01:00"},
		},
		"the last hours of a leap year past the tables": {
			"30 * * * *", "Europe/Warsaw", "2040-12-31T22:45:00Z",
			[]string{"2041-01-01T00:30:00+01:00", "2041-01-01T01:30:00+01:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustSchedule(t, tt.expr, tt.zone)
			require.Equal(t, tt.want, upcoming(t, s, mustTime(t, tt.after), len(tt.want)))
		})
	}
}

func TestEveryHourFollowsRealTime(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]int64{"2026-03-08": 23, "2026-06-01": 24, "2026-11-01": 25} {
		location, err := time.LoadLocation("America/New_York")
		require.NoError(t, err)
		day, err := time.ParseInLocation(time.DateOnly, date, location)
		require.NoError(t, err)
		_, _, count := mustSchedule(t, "0 * * * *", "America/New_York").
			Between(day.Add(-time.Second), day.AddDate(0, 0, 1).Add(-time.Second))
		require.Equal(t, want, count, date)
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expr, zone, after, upTo string
		first, last             string
		count                   int64
	}{
		"three years of seconds": {
			"* * * * * *", "America/New_York", "2026-11-30T00:00:00Z", "2029-11-30T00:00:00Z",
			"2026-11-30T00:00:01Z", "2029-11-30T00:00:00Z", (3*365 + 1) * 86400,
		},
		"all time": {
			"@yearly", "", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
			"0002-01-01T00:00:00Z", "9999-01-01T00:00:00Z", 9998,
		},
		"upTo counts, after does not": {
			"0 9 * * *", "", "2026-11-29T09:00:00Z", "2026-11-30T09:00:00Z",
			"2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z", 1,
		},
		"parts of seconds": {
			"* * * * * *", "", "2026-11-30T09:00:00.9Z", "2026-11-30T09:00:02.1Z",
			"2026-11-30T09:00:01Z", "2026-11-30T09:00:02Z", 2,
		},
		"none":             {"0 9 * * *", "", "2026-11-30T09:00:00Z", "2026-12-01T08:59:59.9Z", "", "", 0},
		"turned round":     {"* * * * *", "", "2026-11-30T09:00:00Z", "2026-11-30T08:00:00Z", "", "", 0},
		"empty":            {"* * * * *", "", "2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z", "", "", 0},
		"a year of nights": {"30 2 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2026-01-01T01:30:00Z", "2026-12-31T01:30:00Z", 365},
		"merged at a jump": {
			"* 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", "2026-03-29T12:00:00Z",
			"2026-03-28T01:00:00Z", "2026-03-29T01:00:00Z", 61,
		},
		// 30 days before the last of April would be its day 0: not the last of March.
		"no day 0":            {"0 0 L-30 3,4 5#5", "", "2026-02-20T00:00:00Z", "2026-04-10T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", 1},
		"a repeated hour":     {"* 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T12:00:00Z", "2026-10-25T00:01:00Z", "2026-10-25T00:59:00Z", 59},
		"every":               {"@every 7s", "", "1969-12-31T23:59:52Z", "1970-01-01T00:00:14Z", "1969-12-31T23:59:53Z", "1970-01-01T00:00:14Z", 4},
		"every, turned round": {"@every 7s", "", "2026-11-30T09:00:00Z", "2026-11-30T08:00:00Z", "", "", 0},
		"every, none":         {"@every 24h", "", "2026-11-30T00:00:00Z", "2026-11-30T23:59:59Z", "", "", 0},
		"at":                  {"@at 2026-11-30T09:00:00Z", "", "2026-11-30T08:00:00Z", "2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z", 1},
		"at, at the border":   {"@at 2026-11-30T09:00:00Z", "", "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, last, count := mustSchedule(t, tt.expr, tt.zone).Between(mustTime(t, tt.after), mustTime(t, tt.upTo))
			require.Equal(t, tt.count, count)
			if count == 0 {
				require.Zero(t, first)
				require.Zero(t, last)
				return
			}
			require.Equal(t, tt.first, first.Format(time.RFC3339))
			require.Equal(t, tt.last, last.Format(time.RFC3339))
		})
	}
}

// Times outside the years that RFC 3339 can write, where sums of seconds could overflow.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	far, longAgo := time.Unix(1<<62, 0), time.Unix(-1<<62, 0)
	for _, expr := range []string{"* * * * * *", "30 2 * * *", "0 0 29 2 *", "@every 1s", "@every 87600h"} {
		s := mustSchedule(t, expr, "Europe/Berlin")
		require.Zero(t, s.Next(far), expr)
		require.False(t, s.Next(longAgo).IsZero(), expr)
		first, last, count := s.Between(longAgo, far)
		require.Equal(t, s.Next(longAgo), first, expr)
		require.Zero(t, s.Next(last), expr)
		require.Positive(t, count, expr)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, expr := range []string{"*/5 * * * *", "30 2 * * 1-5", "30 2 LW,1W * 5#2", "@every 1m"} {
		s := mustSchedule(t, expr, "America/New_York")
		now := mustTime(t, "2026-11-30T09:00:00Z")
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Next(now) }), expr)
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Between(now, now.AddDate(1, 0, 0)) }), expr)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct{ name, expr, zone, after string }{
		{"every second", "* * * * * *", "", "2026-11-30T09:00:00Z"},
		{"every 5 minutes in a zone", "*/5 * * * *", "America/New_York", "2026-11-30T09:00:00Z"},
		{"daily", "0 9 * * *", "", "2026-11-30T09:00:00Z"},
		{"daily in a zone", "0 9 * * *", "America/New_York", "2026-11-30T09:00:00Z"},
		{"daily in a zone, across the change", "30 2 * * *", "America/New_York", "2027-03-13T09:00:00Z"},
		{"rare", "0 0 29 2 *", "America/New_York", "2096-02-29T09:00:00Z"},
		{"rare, every hour", "0 * 29 2 *", "America/New_York", "2096-03-01T09:00:00Z"},
		{"rarest", "0 0 * 2 SUN#5", "America/New_York", "2088-02-29T09:00:00Z"},
		{"rarest, every hour", "0 * * 2 SUN#5", "America/New_York", "2088-03-01T09:00:00Z"},
		{"nearest weekdays", "0 0 1W,15W,L-1 * *", "", "2026-11-30T09:00:00Z"},
		{"every 90s", "@every 90s", "", "2026-11-30T09:00:00Z"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, after := mustSchedule(b, bench.expr, bench.zone), mustTime(b, bench.after)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(after)
			}
		})
	}
}

func BenchmarkBetween(b *testing.B) {
	for _, bench := range []struct{ name, expr, zone, after, upTo string }{
		{"a minute", "* * * * * *", "America/New_York", "2026-11-30T09:00:00Z", "2026-11-30T09:01:00Z"},
		{"three years of seconds", "* * * * * *", "America/New_York", "2026-11-30T09:00:00Z", "2029-11-30T09:00:00Z"},
		{"three years of nights", "30 2 * * *", "America/New_York", "2026-11-30T09:00:00Z", "2029-11-30T09:00:00Z"},
		{"all time", "* * * * * *", "America/New_York", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, after, upTo := mustSchedule(b, bench.expr, bench.zone), mustTime(b, bench.after), mustTime(b, bench.upTo)
			b.ReportAllocs()
			for b.Loop() {
				s.Between(after, upTo)
			}
		})
	}
}
