package cronrunner

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestParseScheduleNormalises(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"0 9 * * *":                              "0 9 * * *",
		"  0\t9  * *   * ":                       "0 9 * * *",
		"0 0 9 * * *":                            "0 9 * * *",
		"5 0 9 * * *":                            "5 0 9 * * *",
		"0 9 ? * mon-fri":                        "0 9 * * MON-FRI",
		"0 9 1 jan,Jul ?":                        "0 9 1 JAN,JUL *",
		"0 9 * * 5-7":                            "0 9 * * 5-7",
		"*/1 0-23 * * *":                         "*/1 0-23 * * *",
		"*/59 */23 */30 */11 */6":                "*/59 */23 */30 */11 */6",
		"0-10/10 * * * *":                        "0-10/10 * * * *",
		"5/15 * * * *":                           "5/15 * * * *",
		"3/1,7-7/1 * * * *":                      "3/1,7-7/1 * * * *",
		"0 0 31 2,3 *":                           "0 0 31 2,3 *",
		"0 0 l,15w,l-3,lw,1 * ?":                 "0 0 L,15W,L-3,LW,1 * *",
		"0 0 ? * fril,7#1,mon#05":                "0 0 * * FRIL,7#1,MON#05",
		"0 0 * 2 SUN#5":                          "0 0 * 2 SUN#5",
		"@daily":                                 "@daily",
		"TZ=UTC @daily":                          "@daily",
		"TZ=UTC\t0 9 * * *":                      "0 9 * * *",
		"@every 90m":                             "@every 1h30m",
		"@every  60m":                            "@every 1h",
		"@every 1h0m5s":                          "@every 1h0m5s",
		"@every 90s":                             "@every 1m30s",
		"@every 10m":                             "@every 10m",
		"@every 0.5m":                            "@every 30s",
		"@every 87600h":                          "@every 87600h",
		"@at 2026-11-30T09:00:00+08:00":          "@at 2026-11-30T01:00:00Z",
		"TZ=Asia/Tokyo @at 2026-11-30T09:00:00Z": "@at 2026-11-30T09:00:00Z",
	} {
		require.Equal(t, want, mustSchedule(t, expr, "").String())
	}
}

// What a person reads after `schedule "…": `. Each of these crashes robfig/cron, is read by it as something else than
// it says, or is refused by it less clearly.
func TestParseScheduleRefuses(t *testing.T) {
	t.Parallel()
	const oneEndOfRange = "has one end only"
	for expr, want := range map[string]string{
		"":                        `empty; write five fields`,
		" \t":                     `empty; write five fields`,
		"*":                       `needs 5 fields (minute hour day-of-month month day-of-week), or 6 with the second first, but has 1`,
		"* * * *":                 `but has 4`,
		"0 0 0 1 1 * 2027":        `but has 7`,
		strings.Repeat("*", 1025): `longer than 1024 characters`,

		"TZ=":                    `TZ= names no zone; write it as "TZ=Europe/Berlin 0 9 * * *"`,
		"CRON_TZ= * * * * *":     `CRON_TZ= names no zone`,
		"TZ=0":                   `nothing follows the zone`,
		"TZ=UTC":                 `nothing follows the zone`,
		"CRON_TZ=UTC ":           `nothing follows the zone; write it as "CRON_TZ=Europe/Berlin 0 9 * * *"`,
		"TZ=TZ=TZ=":              `nothing follows the zone`,
		"TZ=UTC TZ=UTC":          `two zones are given; keep one`,
		"TZ=TZ=UTC * * * * *":    `time zone "TZ=UTC": not the name of a zone`,
		"TZ=EST * * * * *":       `such as "America/New_York"`,
		"tz=UTC * * * * *":       `second field "tz=UTC"`,
		"TZ=UTC CRON_TZ=UTC 0 9": `two zones are given; keep one`,

		"*/90 * * * *":    `minute field "*/90": step 90 is larger than the range 0-59, so it would mean "0"; for every 90 minutes use "@every 90m"`,
		"*/60 * * * *":    `use "@every 60m"`,
		"*/60 * * * * *":  `second field "*/60": step 60 is larger than the range 0-59, so it would mean "0"; for every 60 seconds use "@every 60s"`,
		"0 */25 * * *":    `hour field "*/25": step 25 is larger than the range 0-23, so it would mean "0"; for every 25 hours use "@every 25h"`,
		"0 0 */32 * *":    `day-of-month field "*/32": step 32 is larger than the range 1-31, so it would mean "1"; for every 32 days use "@every 768h"`,
		"0 0 */31 * *":    `so it would mean "1"`,
		"0 0 1 */12 *":    `month field "*/12": step 12 is larger than the range 1-12, so it would mean "1"`,
		"0 0 * * */7":     `day-of-week field "*/7": step 7 is larger than the range 0-6, so it would mean "0"`,
		"0 0 * * 7/2":     `step 2 is larger than the range 7, so it would mean "7"`,
		"0-10/20 * * * *": `minute field "0-10/20": step 20 is larger than the range 0-10, so it would mean "0"`,
		"50/10 * * * *":   `step 10 is larger than the range 50-59, so it would mean "50"`,
		"0,*/90 * * * *":  `step 90 is larger`,
		"*/0 * * * *":     `step "0" must be a number, 1 or more`,
		"*/ * * * *":      `step "" must be a number, 1 or more`,
		"*/-5 * * * *":    `step "-5" must be a number, 1 or more`,
		"1/2/3 * * * *":   `step "2/3" must be a number, 1 or more`,

		"*/99999999999999999999 * * * *": `must be a number`,
		"99999999999999999999 * * * *":   `is not one of 0-59`,

		", * * * *":         `minute field ",": an item of the list is empty; remove the extra comma`,
		"1,,2 * * * *":      `minute field "1,,2": an item of the list is empty; remove the extra comma`,
		"1, * * * *":        `an item of the list is empty`,
		"*-5 * * * *":       `"*-5" mixes a star with something else`,
		"?-5 * * * *":       `minute field "?-5": "*-5" mixes a star with something else`,
		"1-* * * * *":       `mixes a star with something else`,
		"** * * * *":        `mixes a star with something else`,
		"+5 * * * *":        `"+5" is not one of 0-59`,
		"-5 * * * *":        oneEndOfRange,
		"5- * * * *":        oneEndOfRange,
		"1-2-3 * * * *":     `"2-3" is not one of 0-59`,
		"60 * * * *":        `minute field "60": 60 is outside 0-59`,
		"0 24 * * *":        `hour field "24": 24 is outside 0-23`,
		"0 0 0 * *":         `day-of-month field "0": 0 is outside 1-31`,
		"0 0 1 13 *":        `month field "13": 13 is outside 1-12 or JAN-DEC`,
		"0 0 * * 8":         `day-of-week field "8": 8 is outside 0-7 or SUN-SAT`,
		"0 0 * * monday":    `"MONDAY" is not one of 0-7 or SUN-SAT`,
		"0 22-2 * * *":      `hour field "22-2": range "22-2" runs backwards; write "22-23,0-2"`,
		"0 23-2 * * *":      `write "23,0-2"`,
		"0 0 * * fri-mon":   `range "FRI-MON" runs backwards; write "5-6,0-1"`,
		"0 0 L/2 * *":       `day-of-month field "L/2": a step cannot follow L or W; write such as "L", "L-3", "LW" or "15W"`,
		"0 0 15W/2 * *":     `a step cannot follow L or W`,
		"0 0 1-L * *":       `a range cannot have L or W in it; write such as "L", "L-3", "LW" or "15W"`,
		"0 0 1-15W * *":     `a range cannot have L or W in it`,
		"0 0 LW-1 * *":      `a range cannot have L or W in it`,
		"0 0 L-3-5 * *":     `a range cannot have L or W in it`,
		"0 0 L-0 * *":       `"L-0" is not one of L-1 to L-30, the days before the last; the last itself is "L"`,
		"0 0 L-31 * *":      `"L-31" is not one of L-1 to L-30`,
		"0 0 L- * *":        `"L-" is not one of L-1 to L-30`,
		"0 0 L-+1 * *":      `"L-+1" is not one of L-1 to L-30`,
		"0 0 0W * *":        `"0W" is not one of 1W to 31W`,
		"0 0 1,32w * *":     `"32W" is not one of 1W to 31W`,
		"0 0 W * *":         `"W" is not one of 1W to 31W`,
		"0 0 L-3W * *":      `"L-3W" is not a day; write such as "L"`,
		"0 0 5L * *":        `"5L" is not a day; write such as "L", "L-3", "LW" or "15W", and the last of a day of the week in its own field`,
		"0 0 5#2 * *":       `day-of-month field "5#2": the nth of a day of the week, such as "5#2", belongs in the day-of-week field`,
		"0 0 *,L * *":       `day-of-month field "*,L": a star is every day already, so the items beside it would mean nothing; remove it, or them`,
		"0 0 L,*/1 * *":     `a star is every day already`,
		"0 0 * * ?,5L":      `a star is every day already`,
		"0 0 * * L":         `day-of-week field "L": some read L alone as Saturday, some as a last day; write "SAT", "5L" for the last Friday of the month`,
		"0 0 * * 5,l":       `some read L alone as Saturday`,
		"0 0 * * 5L/2":      `a step cannot follow L or #; write such as "5L" (the last Friday of the month) or "5#2" (the second)`,
		"0 0 * * L/2":       `a step cannot follow L or #`,
		"0 0 * * 5#1/2":     `a step cannot follow L or #`,
		"0 0 * * 1-5L":      `a range cannot have L or # in it; write such as "5L" (the last Friday of the month) or "5#2" (the second), one item for each day`,
		"0 0 * * mon-fri#2": `a range cannot have L or # in it`,
		"0 0 * * 5#1-2":     `a range cannot have L or # in it`,
		"0 0 * * 8L":        `8 is outside 0-7 or SUN-SAT`,
		"0 0 * * mondayl":   `"MONDAY" is not one of 0-7 or SUN-SAT`,
		"0 0 * * 8#1":       `8 is outside 0-7 or SUN-SAT`,
		"0 0 * * #1":        `"" is not one of 0-7 or SUN-SAT`,
		"0 0 * * *#1":       `"*" is not one of 0-7 or SUN-SAT`,
		"0 0 * * 5#":        `"" after # is not one of 1-5, how often a month can have a day of the week`,
		"0 0 * * 5#0":       `"0" after # is not one of 1-5`,
		"0 0 * * 5#6":       `"6" after # is not one of 1-5`,
		"0 0 * * 5#L":       `"L" after # is not one of 1-5`,
		"0 0 * * 5#1#2":     `"1#2" after # is not one of 1-5`,
		"0 0 * * LW":        `day-of-week field "LW": "L", "L-3", "LW" and "15W" belong in the day-of-month field`,
		"0 0 * * 15W":       `belong in the day-of-month field`,
		"0 0 * * L-3":       `belong in the day-of-month field`,
		"L 0 * * *":         `minute field "L": "L", "L-3", "LW" and "15W" belong in the day-of-month field`,
		"0 5#2 * * *":       `belongs in the day-of-week field`,
		"0 0 1 JUL#1 *":     `belongs in the day-of-week field`,
		"0 0 H * *":         `a hashed value (H) is not supported`,
		"0 0 30W 2 *":       `never fires: none of its months has such a day`,
		"0 0 L-29 2 *":      `never fires`,
		"0 0 L-30 2,4 *":    `never fires`,
		"0 0 31,31W 4 ?":    `never fires`,
		"H * * * *":         `a hashed value (H) is not supported; give each job a minute of its own`,
		"H/15 * * * *":      `a hashed value (H) is not supported`,
		"0 0 31 2 *":        `never fires: none of its months has such a day`,
		"0 0 30 2 *":        `never fires`,
		"0 0 30-31 2 ?":     `never fires`,
		"0 0 31 4,6,9,11 *": `never fires`,

		"@every":           `@every takes one duration; write a duration such as "@every 90s"`,
		"@every 5":         `@every "5": not a duration`,
		"@every 1d":        `@every "1d": not a duration, or too long; write a duration such as "@every 90s", "@every 15m" or "@every 24h"`,
		"@every 5 m":       `@every takes one duration`,
		"@every 0s":        `@every "0s": shorter than 1s; use at least "@every 1s"`,
		"@every -5s":       `shorter than 1s`,
		"@every 1ns":       `shorter than 1s`,
		"@every 500ms":     `shorter than 1s`,
		"@every 1500ms":    `@every "1500ms": not whole seconds; use "@every 2s"`,
		"@every 1h0.4s":    `not whole seconds; use "@every 1h"`,
		"@every 87600h1s":  `@every "87600h1s": longer than ten years (87600h)`,
		"@every 999999h":   `longer than ten years`,
		"@every 3000000h":  `too long`,
		"@every5m":         `"@every5m" is unknown; there are @hourly`,
		"@at":              `@at takes one RFC 3339 time`,
		"@at 2026-11-30":   `not an RFC 3339 time with an offset; write it as "@at 2026-11-30T09:00:00+08:00"`,
		"@at 2026-11-30 9": `@at takes one RFC 3339 time`,
		"@reboot":          `@reboot is not supported: a job belongs to the cluster, which has no reboot`,
		"@Daily":           `"@Daily" is unknown; there are @hourly, @daily`,
		"@daily 5":         `nothing may follow @daily`,
		"@":                `"@" is unknown`,

		"@at 2026-11-30T09:00:00":       `not an RFC 3339 time with an offset`,
		"@at 2026-11-30T09:00:00.5Z":    `not whole seconds`,
		"@at 2026-02-30T09:00:00Z":      `not an RFC 3339 time`,
		"@at 0000-12-31T09:00:00Z":      `outside the years 1 to 9999`,
		"@at 9999-12-31T23:00:00-08:00": `outside the years 1 to 9999`,
	} {
		s, err := ParseSchedule(expr, "")
		require.ErrorContains(t, err, want, "schedule %q", expr)
		require.Nil(t, s)
	}
}

// The hint must be one that is accepted.
func TestParseScheduleHintsAtEveryOnlyWithinItsLimit(t *testing.T) {
	t.Parallel()
	_, err := ParseSchedule("0 */87600 * * *", "")
	require.ErrorContains(t, err, `use "@every 87600h"`)
	_, err = ParseSchedule("0 */87601 * * *", "")
	require.ErrorContains(t, err, "step 87601 is larger than the range")
	require.NotContains(t, err.Error(), "@every")
}

func TestParseScheduleZone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expr, zone, want string }{
		{"0 9 * * *", "", "UTC"},
		{"0 9 * * *", "UTC", "UTC"},
		{"0 9 * * *", "Etc/UTC", "UTC"},
		{"0 9 * * *", "Asia/Shanghai", "Asia/Shanghai"},
		{"TZ=Asia/Shanghai 0 9 * * *", "", "Asia/Shanghai"},
		{"CRON_TZ=Asia/Shanghai 0 9 * * *", "Asia/Shanghai", "Asia/Shanghai"},
		{"TZ=UTC 0 9 * * *", "Etc/UTC", "UTC"},
		{"@every 1h", "Asia/Shanghai", "Asia/Shanghai"},
	} {
		require.Equal(t, tt.want, mustSchedule(t, tt.expr, tt.zone).Zone(), "%q in %q", tt.expr, tt.zone)
	}

	_, err := ParseSchedule("TZ=Europe/Berlin 0 9 * * *", "Asia/Shanghai")
	require.EqualError(t, err, `"TZ=Europe/Berlin" contradicts the job's time zone "Asia/Shanghai"; keep one`)
	_, err = ParseSchedule("TZ=Europe/Berlin 0 9 * * *", "UTC")
	require.ErrorContains(t, err, "contradicts")
	_, err = ParseSchedule("@every 1h", "EST")
	require.ErrorContains(t, err, `time zone "EST"`)
}

func FuzzParseSchedule(f *testing.F) {
	for _, expr := range []string{
		"0 9 * * *", "*/15 0-6,22 1,15 JAN-mar 5-7", "59 59 23 31 12 ?", "0 0 29 2 *", "0 0 31 2 *", "*/90 * * * *", "1,,2 * * * *",
		"TZ=", "TZ=0", "CRON_TZ=UTC ", "TZ=Asia/Tokyo 30 2 * * *", "@daily", "@every 90m", "@every 500ms",
		"@at 2026-11-30T09:00:00+08:00", "0 0 L * *", "0 0 * * 5#2", "*-5 * * * *",
		"0 0 1,L-3,LW,15W 2 SUN#5,5L", "0 0 30W 2 *",
	} {
		f.Add(expr, "")
		f.Add(expr, "America/New_York")
	}
	f.Add("0 9 * * *", "../../etc/passwd")
	f.Add("0 9 * * *", "asia/shanghai")
	f.Fuzz(func(t *testing.T, expr, zone string) {
		s, err := ParseSchedule(expr, zone)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		again := mustSchedule(t, s.String(), s.Zone())
		require.Equal(t, s.String(), again.String())
		require.Equal(t, s.Words(), again.Words())
		require.Regexp(t, "^(At|Every|Once,) ", s.Words())
		for _, from := range []string{"2026-11-30T09:00:00Z", "2096-03-01T00:00:00Z"} {
			after := mustTime(t, from)
			next := s.Next(after)
			require.Equal(t, next, again.Next(after))
			require.True(t, next.After(after) || next.IsZero() && strings.HasPrefix(s.String(), "@at"))
			first, last, count := s.Between(after, after.AddDate(10, 0, 0))
			if count > 0 {
				require.Equal(t, next, first)
				require.False(t, last.Before(first))
				require.LessOrEqual(t, count, int64(last.Sub(first)/time.Second)+1)
			}
		}
	})
}
