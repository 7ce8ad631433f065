package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moment is an instant as a page shows it: in words that the script keeps up to date, with the instant itself beside
// them.
type moment struct {
	ISO   string // for the script; "" for no instant
	Title string // the instant, for people
	Text  string // how far it is from now
}

// moment says when t is, seen from now.
func (l language) moment(t, now time.Time) moment {
	if t.IsZero() {
		return moment{Text: "–"}
	}
	return moment{ISO: t.UTC().Format("2006-01-02T15:04:05Z"), Title: stamp(t), Text: l.relative(t, now)}
}

// stamp is an instant for people, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// relative says how far t is from now. The script says it in the same words.
func (l language) relative(t, now time.Time) string {
	switch d := t.Sub(now).Round(time.Second); {
	case d > 0:
		return l.say("in", l.span(d))
	case d < 0:
		return l.say("ago", l.span(-d))
	}
	return l.say("now")
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// span renders whole seconds in the largest unit, and the next one too while the number is small.
func (l language) span(d time.Duration) string {
	units := strings.Split(l.say("units"), ",")
	sizes := [...]time.Duration{time.Second, time.Minute, time.Hour, day, year}
	for i := len(sizes) - 1; i > 0; i-- {
		if d < sizes[i] {
			continue
		}
		text := strconv.FormatInt(int64(d/sizes[i]), 10) + units[i]
		if rest := d % sizes[i] / sizes[i-1]; rest > 0 && d < 10*sizes[i] {
			text += strconv.FormatInt(int64(rest), 10) + units[i-1]
		}
		return text
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + units[0]
}

// elapsed is a duration at a glance.
func (l language) elapsed(d time.Duration) string {
	second, _, _ := strings.Cut(l.say("units"), ",")
	switch {
	case d <= 0:
		return "0" + second
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + second
	}
	return l.span(d.Round(time.Second))
}

func (l language) millis(ms int64) string { return l.elapsed(time.Duration(ms) * time.Millisecond) }

// number groups the digits of n.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// percent is a share of 1, never 100% of what is not all of it, nor 0% of what is something.
func percent(share float64) string {
	switch {
	case share >= 1:
		return "100%"
	case share > 0.999:
		return "99.9%"
	case share > 0 && share < 0.001:
		return "0.1%"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*share), ".0") + "%"
}

// bytesText is a number of bytes at a glance.
func bytesText(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return strconv.FormatInt(n, 10) + " B"
	case n < kib*kib:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib*kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/kib/kib)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/kib/kib/kib)
}
