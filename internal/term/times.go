package term

import (
	"fmt"
	"time"
)

// Relative says when t is, seen from now: "in 3m", "2h5m ago", "now". The zero time is "".
func Relative(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := t.Sub(now).Round(time.Second)
	switch {
	case d == 0:
		return "now"
	case d > 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// Ago is Relative for a sentence about what is over, or is about to begin.
func Ago(t, now time.Time) string {
	if text := Relative(t, now); text != "now" {
		return text
	}
	if t.After(now) {
		return "at once"
	}
	return "just now"
}

// Instant is a time as JSON has it, in whole seconds. The zero time is "".
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Elapsed is a duration at a glance: "<1ms", "350ms", "1.2s", "42s", "3m20s". Only no time at all is "0s".
func Elapsed(d time.Duration) string {
	switch {
	case d > 0 && d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return span(d.Round(time.Second))
	}
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// span renders whole seconds in the largest unit, and the next one too while the number is small.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 10*day:
		return two(d, day, "d", time.Hour, "h")
	case d < 2*year:
		return fmt.Sprintf("%dd", d/day)
	default:
		return fmt.Sprintf("%dy", d/year)
	}
}

func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	if rest := d % big / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/big, bigName, rest, smallName)
	}
	return fmt.Sprintf("%d%s", d/big, bigName)
}
