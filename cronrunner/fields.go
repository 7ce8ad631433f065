package cronrunner

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronField is one of the places of an expression.
type cronField struct {
	name     string
	min, max int
	names    []string      // of the values from min on
	unit     time.Duration // one step; 0 where steps differ in length
	unitName string
}

var cronFields = []cronField{
	{name: "second", min: 0, max: 59, unit: time.Second, unitName: "second"},
	{name: "minute", min: 0, max: 59, unit: time.Minute, unitName: "minute"},
	{name: "hour", min: 0, max: 23, unit: time.Hour, unitName: "hour"},
	{name: "day-of-month", min: 1, max: 31, unit: 24 * time.Hour, unitName: "day"},
	{name: "month", min: 1, max: 12, names: []string{
		"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
	}},
	{name: "day-of-week", min: 0, max: 6, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// checkedFields are the fields of an expression that mean what they say.
type checkedFields struct {
	normal []string // as String has them
	plain  []string // as robfig/cron is to read them

	// What robfig/cron cannot read.
	dayOfMonth dayOfMonthRule
	dayOfWeek  dayOfWeekRule
}

func checkFields(words []string) (checkedFields, error) {
	var c checkedFields
	places := cronFields
	switch len(words) {
	case 6:
	case 5:
		places = cronFields[1:]
	default:
		return c, fmt.Errorf("needs 5 fields (minute hour day-of-month month day-of-week), or 6 with the second "+
			"first, but has %d", len(words))
	}
	for i, word := range words {
		text := strings.ReplaceAll(strings.ToUpper(word), "?", "*")
		plain, err := c.check(places[i], text)
		if err != nil {
			return c, fmt.Errorf("%s field %q: %w", places[i].name, word, err)
		}
		c.normal, c.plain = append(c.normal, text), append(c.plain, plain)
	}
	if len(c.normal) == 6 && c.normal[0] == "0" {
		c.normal = c.normal[1:]
	}
	return c, nil
}

// check returns a field as robfig/cron is to read it, and keeps what that cannot read.
func (c *checkedFields) check(f cronField, text string) (string, error) {
	const nothing = "," // to robfig/cron a list without values, and without a star
	var plain []string
	hasStar, hasRule := false, false
	for item := range strings.SplitSeq(text, ",") {
		isRule, err := c.readRule(f, item)
		if err != nil {
			return "", err
		}
		if isRule {
			hasRule = true
			continue
		}
		checked, err := f.checkItem(item)
		if err != nil {
			return "", err
		}
		hasStar = hasStar || item == "*" || item == "*/1"
		plain = append(plain, checked)
	}
	switch {
	case hasRule && hasStar:
		return "", errors.New("a star is every day already, so the items beside it would mean nothing; remove it, or them")
	case len(plain) == 0:
		return nothing, nil
	}
	return strings.Join(plain, ","), nil
}

func (c *checkedFields) readRule(f cronField, item string) (isRule bool, err error) {
	switch {
	case f.isDayOfMonth():
		return c.dayOfMonth.read(item)
	case f.isDayOfWeek():
		return c.dayOfWeek.read(item, f.value)
	}
	return false, nil
}

func (f cronField) checkItem(item string) (string, error) {
	if item == "" {
		return "", errors.New("an item of the list is empty; remove the extra comma")
	}
	if err := f.unsupported(item); err != nil {
		return "", err
	}
	base, stepText, hasStep := strings.Cut(item, "/")
	low, high, err := f.span(base, hasStep)
	if err != nil {
		return "", err
	}
	step := 1
	if hasStep {
		if step, err = f.step(stepText, base, low, high); err != nil {
			return "", err
		}
	}
	if f.isDayOfWeek() && high == 7 {
		return listDaysOfWeek(low, high, step), nil
	}
	return item, nil
}

// unsupported names what other crons have and this one has not, or not in this field.
func (f cronField) unsupported(item string) error {
	switch {
	case item == "H" || strings.HasPrefix(item, "H/") || strings.HasPrefix(item, "H("):
		return errors.New("a hashed value (H) is not supported; give each job a minute of its own")
	case slices.Contains(f.names, item):
		return nil
	case strings.Contains(item, "#"):
		return errors.New(`the nth of a day of the week, such as "5#2", belongs in the day-of-week field`)
	case item == "L" || strings.HasPrefix(item, "L-") || strings.HasSuffix(item, "W"):
		return errors.New(`"L", "L-3", "LW" and "15W" belong in the day-of-month field`)
	}
	return nil
}

// span returns the first and the last value of an item without its step; Sunday at the end of a range is 7.
func (f cronField) span(text string, hasStep bool) (low, high int, err error) {
	if text == "*" {
		return f.min, f.max, nil
	}
	if strings.Contains(text, "*") {
		return 0, 0, fmt.Errorf("%q mixes a star with something else; a star stands alone or before a step", text)
	}
	lowText, highText, isRange := strings.Cut(text, "-")
	if isRange && (lowText == "" || highText == "") {
		return 0, 0, fmt.Errorf("range %q has one end only", text)
	}
	if low, err = f.value(lowText); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		if high, err = f.value(highText); err != nil {
			return 0, 0, err
		}
		if highText == "SUN" && low > 0 {
			high = 7
		}
	case hasStep:
		high = max(low, f.max)
	default:
		high = low
	}
	if low > high {
		return 0, 0, fmt.Errorf("range %q runs backwards; write \"%s,%s\"", text, rangeText(low, f.max), rangeText(f.min, high))
	}
	return low, high, nil
}

func (f cronField) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, nil
	}
	last := f.max
	if f.isDayOfWeek() {
		last = 7
	}
	allowed := rangeText(f.min, last)
	if len(f.names) > 0 {
		allowed += " or " + f.names[0] + "-" + f.names[len(f.names)-1]
	}
	n, ok := digits(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("%q is not one of %s", text, allowed)
	case n < f.min || n > last:
		return 0, fmt.Errorf("%s is outside %s", text, allowed)
	}
	return n, nil
}

// step returns the step of an item, which must lead to a second value within low and high.
func (f cronField) step(text, base string, low, high int) (int, error) {
	n, ok := digits(text)
	switch {
	case !ok || n == 0:
		return 0, fmt.Errorf("step %q must be a number, 1 or more", text)
	case n == 1 || n <= high-low:
		return n, nil
	}
	hint := ""
	if base == "*" && f.unit > 0 && n <= int(maxEvery/f.unit) {
		hint = fmt.Sprintf("; for every %d %ss use \"@every %s\"", n, f.unitName, stepDuration(n, f.unit))
	}
	return 0, fmt.Errorf("step %d is larger than the range %s, so it would mean \"%d\"%s", n, rangeText(low, high), low, hint)
}

// stepDuration writes n units as a duration, in the unit of the field where durations have it.
func stepDuration(n int, unit time.Duration) string {
	letter := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}
	if letter[unit] == "" { // a day, which durations do not have
		n, unit = n*int(unit/time.Hour), time.Hour
	}
	return strconv.Itoa(n) + letter[unit]
}

func (f cronField) isDayOfMonth() bool { return f.name == "day-of-month" }

func (f cronField) isDayOfWeek() bool { return f.name == "day-of-week" }

// listDaysOfWeek lists a range that ends on Sunday as 7, for robfig/cron, which knows it as 0 only.
func listDaysOfWeek(low, high, step int) string {
	var days []string
	for day := low; day <= high; day += step {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

func rangeText(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

// digits reads digits and nothing else: no sign.
func digits(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strings.Trim(text, "0123456789") == ""
}

// shorten clips what a person may have given for an error message.
func shorten(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
