package cronrunner

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// Bounds of what ParseSchedule accepts.
const (
	maxExprLength = 1024
	minEvery      = time.Second
	maxEvery      = 10 * 365 * 24 * time.Hour
)

// ParseSchedule parses an expression. Its errors say what is wrong and what to write instead; they do not repeat the
// expression. It accepts:
//
//   - five fields, "minute hour day-of-month month day-of-week", or six with the second first. A field is *, a value,
//     a range a-b, each with a step /n, or a list of these with commas. Months and days of the week have their
//     three-letter English names too; Sunday is 0 or 7; ? is *. If neither day field has a * (or */1), a day that
//     matches one of the two is enough; otherwise both must match. This is the rule of robfig/cron, whose parser
//     is used, and nearly that of crontab(5), where */2 counts as a star too.
//   - as items of the day fields, as in Quartz: in the day of the month L (the last), L-n (n days before it), LW (the
//     last day from Monday to Friday) and nW (the day from Monday to Friday nearest to day n, in the same month; none
//     in a month without a day n); in the day of the week dL (the last d of the month) and d#n (its n-th d).
//   - @hourly, @daily or @midnight, @weekly, @monthly, @yearly or @annually.
//   - "@every d" with a Go duration of whole seconds, from 1s to 87600h (ten years): the multiples of d since
//     1970-01-01T00:00:00Z, so that all instances agree on them.
//   - "@at t" with one RFC 3339 time in whole seconds.
//
// Where a schedule could only mean something else than it says, or never fire, it is refused.
//
// zone is the IANA name of the zone in which fields are read: a region such as "Asia/Shanghai", "UTC", or "" for UTC.
// A prefix TZ= or CRON_TZ= of the expression names it as well; if both do, they must agree.
//
// At the transitions of daylight saving, a schedule whose hour field covers all 24 hours follows real time: it is due
// whenever the clocks show a matching time, so an hourly job runs 25 times on the long day. Any other is due once for
// each matching local time: in a repeated hour at the first of the two, and in hours (or a day) that the clocks skip
// at the instant of the jump, where all that was skipped becomes one run.
func ParseSchedule(expr, zone string) (*Schedule, error) {
	if len(expr) > maxExprLength {
		return nil, fmt.Errorf("longer than %d characters", maxExprLength)
	}
	expr, zone, err := cutZone(expr, zone)
	if err != nil {
		return nil, err
	}
	location, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(expr)
	if len(words) == 0 {
		return nil, errors.New(`empty; write five fields, such as "0 9 * * *"`)
	}
	s := &Schedule{zone: location.String()}
	switch words[0] {
	case "@every":
		s.expr, s.plan, err = parseEvery(words[1:])
	case "@at":
		s.expr, s.plan, err = parseAt(words[1:])
	default:
		s.expr, s.plan, err = parseWallTimes(words, location)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// cutZone takes a zone prefix off the expression and returns the zone that holds. robfig/cron must not see the
// prefix: it panics when nothing follows.
func cutZone(expr, zone string) (rest, holds string, err error) {
	expr = strings.TrimSpace(expr)
	prefix, given := zonePrefix(expr)
	if !given {
		return expr, zone, nil
	}
	word := expr
	if i := strings.IndexFunc(expr, unicode.IsSpace); i >= 0 {
		word = expr[:i]
	}
	name, rest := word[len(prefix):], strings.TrimSpace(expr[len(word):])
	_, again := zonePrefix(rest)
	switch {
	case name == "":
		return "", "", fmt.Errorf("%s names no zone; write it as %q", prefix, prefix+"Europe/Berlin 0 9 * * *")
	case rest == "":
		return "", "", fmt.Errorf("nothing follows the zone; write it as %q", prefix+"Europe/Berlin 0 9 * * *")
	case again:
		return "", "", errors.New("two zones are given; keep one")
	case zone != "" && !sameZone(zone, name):
		return "", "", fmt.Errorf("%q contradicts the job's time zone %q; keep one", shorten(word), shorten(zone))
	}
	return rest, name, nil
}

func zonePrefix(expr string) (prefix string, given bool) {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if strings.HasPrefix(expr, prefix) {
			return prefix, true
		}
	}
	return "", false
}

func parseEvery(words []string) (string, plan, error) {
	const usage = `write a duration such as "@every 90s", "@every 15m" or "@every 24h"`
	if len(words) != 1 {
		return "", nil, fmt.Errorf("@every takes one duration; %s", usage)
	}
	d, err := time.ParseDuration(words[0])
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("@every %q: not a duration, or too long; %s", words[0], usage)
	case d < minEvery:
		return "", nil, fmt.Errorf("@every %q: shorter than 1s; use at least \"@every 1s\"", words[0])
	case d > maxEvery:
		return "", nil, fmt.Errorf("@every %q: longer than ten years (%dh)", words[0], maxEvery/time.Hour)
	case d%time.Second != 0:
		return "", nil, fmt.Errorf("@every %q: not whole seconds; use %q", words[0], "@every "+shortDuration(d.Round(time.Second)))
	}
	return "@every " + shortDuration(d), everyPlan(d / time.Second), nil
}

// shortDuration writes whole seconds as people do: "1h", not "1h0m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func parseAt(words []string) (string, plan, error) {
	const usage = `write it as "@at 2026-11-30T09:00:00+08:00"`
	if len(words) != 1 {
		return "", nil, fmt.Errorf("@at takes one RFC 3339 time, with T and an offset; %s", usage)
	}
	at, err := time.Parse(time.RFC3339, words[0])
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("@at %q: not an RFC 3339 time with an offset; %s", words[0], usage)
	case at.Nanosecond() != 0:
		return "", nil, fmt.Errorf("@at %q: not whole seconds; %s", words[0], usage)
	case at.Unix() < minUnix || at.Unix() > maxUnix:
		return "", nil, fmt.Errorf("@at %q: outside the years 1 to 9999", words[0])
	}
	return "@at " + at.UTC().Format(time.RFC3339), atPlan(at.Unix()), nil
}

var cronParser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseWallTimes parses fields, or a descriptor that stands for some, with robfig/cron, once it is sure that the
// parser reads them as they are meant.
func parseWallTimes(words []string, location *time.Location) (string, plan, error) {
	fields := checkedFields{normal: words, plain: words}
	var err error
	if strings.HasPrefix(words[0], "@") {
		err = checkDescriptor(words)
	} else {
		fields, err = checkFields(words)
	}
	if err != nil {
		return "", nil, err
	}
	parsed, err := cronParser.Parse(strings.Join(fields.plain, " "))
	if err != nil {
		return "", nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return "", nil, fmt.Errorf("the parser made a %T of it", parsed)
	}
	times := newWallTimes(spec, fields, location)
	if !times.everFires() {
		return "", nil, errors.New("never fires: none of its months has such a day")
	}
	return strings.Join(fields.normal, " "), times, nil
}

// newWallTimes puts together what robfig/cron has read of the fields and what it cannot read.
func newWallTimes(spec *cron.SpecSchedule, fields checkedFields, location *time.Location) *wallTimes {
	const star = 1 << 63 // robfig/cron's mark of a field with a star
	times := &wallTimes{
		localTimes: localTimes{
			second: spec.Second &^ star, minute: spec.Minute &^ star, hour: spec.Hour &^ star, month: spec.Month &^ star,
			dayOfMonth: fields.dayOfMonth, dayOfWeek: fields.dayOfWeek,
			eitherDay: (spec.Dom|spec.Dow)&star == 0,
		},
		location:  location,
		everyHour: spec.Hour&allHours == allHours,
	}
	times.dayOfMonth.on = spec.Dom &^ star
	times.dayOfWeek.nth |= eachWeek(spec.Dow &^ star)
	return times
}

func checkDescriptor(words []string) error {
	const known = "@hourly, @daily, @weekly, @monthly, @yearly, @every and @at"
	switch words[0] {
	case "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually":
		if len(words) > 1 {
			return fmt.Errorf("nothing may follow %s", words[0])
		}
		return nil
	case "@reboot":
		return fmt.Errorf("@reboot is not supported: a job belongs to the cluster, which has no reboot; there are %s", known)
	}
	return fmt.Errorf("%q is unknown; there are %s", words[0], known)
}
