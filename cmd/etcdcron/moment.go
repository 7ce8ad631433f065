package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// moment is an instant as people write it: with its offset, as the clocks of a zone show it, or as so long ago.
type moment string

func (m *moment) String() string { return string(*m) }
func (m *moment) Type() string   { return "time" }

func (m *moment) Set(value string) error {
	if _, err := moment(value).in(time.UTC, time.Time{}); err != nil && !errors.Is(err, errSkipped) {
		return err
	}
	*m = moment(value)
	return nil
}

// The forms of a local time.
var localForms = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"}

// errSkipped is a local time that the clocks skip in spring.
var errSkipped = errors.New("the clocks skip that time")

// in are the instants that it may mean, the earlier first: the clocks of zone show some times twice in autumn. Of one
// that they skip in spring it is the instant of the jump, and errSkipped.
func (m moment) in(zone *time.Location, now time.Time) ([]time.Time, error) {
	text := string(m)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return []time.Time{t}, nil
	}
	if d, ok := ago(text); ok {
		return []time.Time{now.Add(-d)}, nil
	}
	for _, form := range localForms {
		if wall, err := time.Parse(form, text); err == nil {
			return onClocks(wall, zone)
		}
	}
	return nil, errors.New("write a time such as 2026-11-30T09:00:00+08:00 or \"2026-11-30 09:00\", or how long ago, such as 90m, 2h or 7d")
}

// ago is a length of time; beside Go's units there are days.
func ago(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n >= 0 && n < 100_000
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// onClocks are the instants at which the clocks of zone show what those of UTC show at wall.
func onClocks(wall time.Time, zone *time.Location) ([]time.Time, error) {
	shows := func(t time.Time) time.Time { // what they show, as if it were UTC
		_, offset := t.In(zone).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	var at []time.Time
	for _, near := range []time.Time{wall.Add(-26 * time.Hour), wall.Add(26 * time.Hour)} { // before and after any change
		_, offset := near.In(zone).Zone()
		if t := wall.Add(-time.Duration(offset) * time.Second); shows(t).Equal(wall) {
			at = append(at, t.UTC())
		}
	}
	if len(at) > 0 {
		slices.SortFunc(at, time.Time.Compare)
		return slices.CompactFunc(at, time.Time.Equal), nil
	}
	// They jump over it: the first instant at which they show more.
	from, to := wall.Add(-26*time.Hour), wall.Add(26*time.Hour)
	for to.Sub(from) > time.Second {
		if middle := from.Add(to.Sub(from) / 2).Truncate(time.Second); shows(middle).After(wall) {
			to = middle
		} else {
			from = middle
		}
	}
	return []time.Time{to.UTC()}, errSkipped
}

// words is a flag that takes some of a few words, separated by commas.
type words[T ~string] struct {
	chosen  []T
	allowed []T
}

func (c *words[T]) String() string {
	texts := make([]string, len(c.chosen))
	for i, w := range c.chosen {
		texts[i] = string(w)
	}
	return strings.Join(texts, ",")
}

func (c *words[T]) Type() string { return "words" }

func (c *words[T]) Set(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		if !slices.Contains(c.allowed, T(word)) {
			return fmt.Errorf("%q is none of them: %w", word, errNotAllowed(c.texts()))
		}
		c.chosen = append(c.chosen, T(word))
	}
	return nil
}

// texts are the words that are allowed.
func (c *words[T]) texts() []string {
	texts := make([]string, len(c.allowed))
	for i, w := range c.allowed {
		texts[i] = string(w)
	}
	return texts
}
