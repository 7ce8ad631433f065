package main

import (
	"strconv"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
)

// The forms of --time-format.
const (
	asRelative = "relative"
	asRFC3339  = "rfc3339"
	asLocal    = "local"
	asUnix     = "unix"
)

// when is how instants are shown in tables: seen from now, unless --time-format says otherwise.
type when struct {
	now    time.Time
	format string
}

// when is how instants are shown from now on.
func (o *options) when() when { return when{now: o.now(), format: o.timeFormat.value} }

// text is an instant; "" for none.
func (w when) text(t time.Time) string {
	if w.format == asRelative || w.format == "" {
		return term.Relative(t, w.now)
	}
	return w.exact(t)
}

// exact is an instant where a relative one would not do.
func (w when) exact(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case w.format == asLocal:
		return t.Local().Format("2006-01-02 15:04:05 -07:00")
	case w.format == asUnix:
		return strconv.FormatInt(t.Unix(), 10)
	}
	return term.Instant(t)
}

// momentText is an instant, and where that stands to now; "" for none.
func momentText(t time.Time, w when) string {
	if t.IsZero() {
		return ""
	}
	return w.exact(t) + ", " + term.Relative(t, w.now)
}
