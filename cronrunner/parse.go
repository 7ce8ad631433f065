package cronrunner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// MaxEvery is the longest interval of an @every schedule.
const MaxEvery = 10 * 366 * 24 * time.Hour

var cronParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// ParseSchedule parses a cron expression of 5 fields, or 6 with seconds first, or a descriptor: @yearly,
// @monthly, @weekly, @daily, @hourly, @every DURATION, @at TIME (RFC 3339). zone is an IANA name, "" for
// UTC; it may stand before the expression instead, as TZ=Asia/Shanghai.
//
// The fields are parsed by robfig/cron. What it would panic at, or take for something else than it says,
// is refused here first.
func ParseSchedule(expr, zone string) (*Schedule, error) {
	s, err := parseSchedule(strings.TrimSpace(expr), zone)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", expr, err)
	}
	return s, nil
}

func parseSchedule(expr, zone string) (*Schedule, error) {
	expr, zone, err := splitZone(expr, zone)
	if err != nil {
		return nil, err
	}
	location, err := loadZone(zone)
	if err != nil {
		return nil, err
	}
	s := &Schedule{expr: strings.Join(strings.Fields(expr), " "), zone: zone}
	word, rest, _ := strings.Cut(s.expr, " ")
	switch {
	case expr == "":
		return nil, errors.New(`the schedule is empty; try "0 9 * * *" or "@every 5m"`)
	case word == "@every":
		s.kind, err = parseEvery(rest)
	case word == "@at":
		s.kind, err = parseAt(rest)
	case strings.HasPrefix(word, "@"):
		s.kind, err = parseDescriptor(s.expr, location)
	default:
		s.kind, err = parseFields(strings.Fields(expr), location)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// splitZone takes a TZ= or CRON_TZ= prefix off.
func splitZone(expr, zone string) (rest, name string, err error) {
	if !strings.HasPrefix(expr, "TZ=") && !strings.HasPrefix(expr, "CRON_TZ=") {
		return expr, orDefault(zone, "UTC"), nil
	}
	prefix, rest, _ := strings.Cut(expr, " ")
	_, name, _ = strings.Cut(prefix, "=")
	rest = strings.TrimSpace(rest)
	switch {
	case name == "":
		return "", "", fmt.Errorf(`%s names no time zone; try "TZ=Asia/Shanghai 0 9 * * *"`, prefix)
	case rest == "":
		return "", "", errors.New(`there is a time zone but no schedule after it; try "TZ=Asia/Shanghai 0 9 * * *"`)
	case strings.HasPrefix(rest, "TZ="), strings.HasPrefix(rest, "CRON_TZ="):
		return "", "", errors.New("two time zones are given; leave one")
	case zone != "" && zone != name:
		return "", "", fmt.Errorf("the expression says time zone %s, the job says %s; leave one", name, zone)
	}
	return rest, name, nil
}

func parseEvery(text string) (kind, error) {
	const hint = `; try "@every 90s" or "@every 1h30m"`
	if text == "" {
		return nil, errors.New("@every wants an interval" + hint)
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("@every %s: not an interval%s", text, hint)
	case d <= 0:
		return nil, fmt.Errorf("@every %s: the interval must be positive%s", text, hint)
	case d%time.Second != 0:
		return nil, fmt.Errorf("@every %s: the interval must be whole seconds, as scheduled times are%s", text, hint)
	case d > MaxEvery:
		return nil, fmt.Errorf("@every %s: the longest interval is %s", text, MaxEvery)
	}
	return everyKind(d / time.Second), nil
}

func parseAt(text string) (kind, error) {
	const hint = `; try "@at 2026-12-01T09:00:00+08:00"`
	t, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("@at %s: not an RFC 3339 time%s", text, hint)
	case t.Nanosecond() != 0:
		return nil, fmt.Errorf("@at %s: scheduled times are whole seconds%s", text, hint)
	}
	return atKind(t.Unix()), nil
}

var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

func parseDescriptor(text string, zone *time.Location) (kind, error) {
	if text == "@reboot" {
		return nil, errors.New("@reboot is not supported: there is no single machine that boots; use @every or a cron expression")
	}
	if !slices.Contains(descriptors, text) {
		return nil, fmt.Errorf("unknown descriptor; use one of %s, @every DURATION, @at TIME", strings.Join(descriptors, ", "))
	}
	return newCronKind(text, zone)
}

func parseFields(fields []string, zone *time.Location) (kind, error) {
	names := cronFields
	switch len(fields) {
	case 5:
		names = names[1:]
	case 6:
	case 7:
		return nil, errors.New("7 fields; want 5 (minute hour day month weekday), or 6 with seconds first; there is no year field")
	default:
		return nil, fmt.Errorf("%d fields; want 5 (minute hour day month weekday), or 6 with seconds first", len(fields))
	}
	checked := make([]string, len(fields))
	for i, text := range fields {
		var err error
		if checked[i], err = names[i].check(text); err != nil {
			return nil, fmt.Errorf("%s field %q: %w", names[i].name, text, err)
		}
	}
	return newCronKind(strings.Join(checked, " "), zone)
}

func newCronKind(expr string, zone *time.Location) (kind, error) {
	parsed, err := cronParser.Parse(expr)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("unexpected kind of schedule %T", parsed)
	}
	c := &cronKind{calendar: newCalendar(spec), zone: zone}
	if _, ok := c.calendar.next(0); !ok {
		return nil, errors.New("it never fires: none of its months has such a day")
	}
	return c, nil
}

// cronField is one field of a cron expression.
type cronField struct {
	name     string
	unit     string // in @every's notation, for a hint; "" if there is none
	min, max int
	names    []string // of min, min+1, ...
}

var cronFields = []cronField{
	{name: "second", unit: "s", max: 59},
	{name: "minute", unit: "m", max: 59},
	{name: "hour", unit: "h", max: 23},
	{name: "day of month", min: 1, max: 31},
	{
		name: "month", min: 1, max: 12,
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	},
	{name: "day of week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

func (f *cronField) isDay() bool { return f.name == "day of month" || f.name == "day of week" }

// check says why robfig/cron must not see the field, or gives it as robfig/cron understands it: Sunday
// is 0 there, and no range reaches over it.
func (f *cronField) check(text string) (string, error) {
	items := strings.Split(text, ",")
	for i, item := range items {
		var err error
		if items[i], err = f.checkItem(item); err != nil {
			return "", err
		}
	}
	return strings.Join(items, ","), nil
}

func (f *cronField) checkItem(item string) (string, error) {
	if item == "" {
		return "", errors.New("an item of the list is empty")
	}
	if err := f.unsupported(item); err != nil {
		return "", err
	}
	base, stepText, stepped := strings.Cut(item, "/")
	lo, hi, err := f.bounds(base, stepped)
	if err != nil {
		return "", err
	}
	step := 1
	if stepped {
		if step, err = number(stepText); err != nil || step == 0 {
			return "", fmt.Errorf("step %q must be a positive number", stepText)
		}
		if span := min(hi, f.top()) - lo; step > max(span, 0) {
			return "", fmt.Errorf("step %d is longer than the range %d-%d, so it would mean %d alone%s", step, lo, hi, lo, f.everyHint(step))
		}
	}
	if f.max != 7 || hi < 7 {
		return item, nil
	}
	var days []string // a weekday range that ends with 7
	for d := lo; d <= hi; d += step {
		days = append(days, strconv.Itoa(d%7))
	}
	return strings.Join(days, ","), nil
}

// top is the greatest value that differs from all others: Sunday is both 0 and 7.
func (f *cronField) top() int {
	if f.max == 7 {
		return 6
	}
	return f.max
}

func (f *cronField) everyHint(step int) string {
	if f.unit == "" {
		return ""
	}
	return fmt.Sprintf(`; for every %d%s use "@every %d%s"`, step, f.unit, step, f.unit)
}

// bounds is the range that an item stands for, without its step.
func (f *cronField) bounds(base string, stepped bool) (lo, hi int, err error) {
	if base == "*" || base == "?" {
		if base == "?" && !f.isDay() {
			return 0, 0, errors.New(`"?" is for the day fields; use "*"`)
		}
		return f.min, f.top(), nil
	}
	from, to, ranged := strings.Cut(base, "-")
	if lo, err = f.value(from); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if hi, err = f.value(to); err != nil {
			return 0, 0, err
		}
	case stepped:
		hi = f.top()
	default:
		hi = lo
	}
	if ranged && hi == 0 && lo > 0 && f.max == 7 {
		hi = 7 // fri-sun
	}
	if lo > hi {
		return 0, 0, fmt.Errorf(`range %s-%s is backwards; write "%s-%d,%d-%s"`, from, to, from, f.top(), f.min, to)
	}
	return lo, hi, nil
}

func (f *cronField) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}
	n, err := number(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number%s", text, f.namesHint())
	}
	if n < f.min || n > f.max {
		return 0, fmt.Errorf("%d is not between %d and %d", n, f.min, f.max)
	}
	return n, nil
}

func (f *cronField) namesHint() string {
	if len(f.names) == 0 {
		return ""
	}
	return " or a name (" + strings.Join(f.names, ", ") + ")"
}

// unsupported names the extensions of other schedulers.
func (f *cronField) unsupported(item string) error {
	if !f.isDay() {
		return nil
	}
	upper := strings.ToUpper(item)
	switch {
	case strings.Contains(upper, "#"):
		return errors.New(`"#" (the n-th weekday of the month) is not supported`)
	case strings.HasSuffix(upper, "W") && !strings.HasSuffix(upper, "-W"):
		return errors.New(`"W" (the nearest working day) is not supported`)
	case upper == "L", strings.HasPrefix(upper, "L-"), strings.HasSuffix(upper, "L"):
		return errors.New(`"L" (the last day of the month) is not supported`)
	default:
		return nil
	}
}

// number takes digits and nothing else.
func number(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" || len(text) > 9 {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}
