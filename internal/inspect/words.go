package inspect

import (
	"cmp"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// reasonTexts are the reasons that do not say it themselves.
var reasonTexts = map[string]string{
	state.ReasonOverlap:      "still running",
	state.ReasonCatchUp:      "passed while nobody led",
	state.ReasonSuperseded:   "a newer time ran instead",
	state.ReasonWindow:       "older than the catch-up window",
	state.ReasonInstanceLost: "instance lost",
	state.ReasonDrain:        "instance stopped",
	state.ReasonQueueFull:    "too many waiting already",
	state.ReasonRetired:      "its job was removed",
	state.ReasonRecordLost:   "its record was lost",
	state.ReasonCoalesced:    "one that waits stands for it",
	state.ReasonReplaced:     "a newer run took its place",
	state.ReasonLimit:        "more than are caught up",
	state.ReasonRequested:    "on request",
}

// Reason is a record's reason in words.
func Reason(reason string) string { return cmp.Or(reasonTexts[reason], reason) }

// Paused says by whom a job was paused, when and why.
func Paused(c *state.Control, now time.Time) string {
	text := "paused"
	if c.By != "" {
		text += " by " + c.By
	}
	if !c.At.IsZero() {
		text += " " + term.Ago(c.At, now)
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

// Ended says how a run that is over has ended, as in "run X ...".
func Ended(r *state.Run) string {
	if r.Status == state.Succeeded || r.Status == state.Failed {
		return string(r.Status)
	}
	return "was " + string(r.Status)
}
