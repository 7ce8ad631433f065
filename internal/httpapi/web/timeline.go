package web

import (
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

const (
	timelineWidth = 200 // of a timeline, in its own units
	leastPiece    = 2   // of its shortest piece
)

// piece is a part of a timeline: a wait, or an attempt.
type piece struct {
	Class    string // "wait", or the result of the attempt
	X, Width int
	Y        int
	Height   int
}

// timeline is a run from when it was due to its end, on the same scale as the runs around it.
type timeline struct {
	Width  int
	Pieces []piece
	Label  string
}

// dueAt is when a run should have begun, and firstAt when it did; zero for one that never did.
func dueAt(r *state.Run) time.Time {
	return firstAt(r).Add(-time.Duration(r.LatenessMS) * time.Millisecond)
}

func firstAt(r *state.Run) time.Time {
	if len(r.Attempts) > 0 {
		return r.Attempts[0].StartedAt
	}
	return r.StartedAt
}

// endAt is when a run has ended; now when it goes on.
func endAt(r *state.Run, now time.Time) time.Time {
	if r.FinishedAt.IsZero() {
		return now
	}
	return r.FinishedAt
}

// stretchOf is how long a run took from when it was due to its end; 0 for one that never began.
func stretchOf(r *state.Run, now time.Time) time.Duration {
	if r.Attempt == 0 {
		return 0
	}
	return max(endAt(r, now).Sub(dueAt(r)), 0)
}

// timelineOf draws a run on a scale on which longest takes the whole width; nil for one that never began.
func (l language) timelineOf(r *state.Run, longest time.Duration, now time.Time) *timeline {
	if r.Attempt == 0 || longest <= 0 {
		return nil
	}
	t := &timeline{Width: timelineWidth}
	due := dueAt(r)
	at := func(when time.Time) int {
		return int(min(max(when.Sub(due), 0), longest) * timelineWidth / longest)
	}
	add := func(class string, from, to time.Time) {
		p := piece{Class: class, X: min(at(from), timelineWidth-leastPiece), Y: 2, Height: 10}
		if class == waits {
			p.Y, p.Height = 6, 2 // a line: nothing runs
		}
		p.Width = max(at(to)-p.X, leastPiece)
		t.Pieces = append(t.Pieces, p)
	}
	said := make([]string, 0, len(r.Attempts)+1)
	if late := firstAt(r).Sub(due); late > 0 && at(firstAt(r)) > 0 {
		add(waits, due, firstAt(r))
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if i > 0 {
			add(waits, r.Attempts[i-1].EndedAt, a.StartedAt)
		}
		add(string(state.Failed), a.StartedAt, a.EndedAt)
		said = append(said, l.reason(a.Reason)+" "+l.elapsed(a.EndedAt.Sub(a.StartedAt)))
	}
	if n := len(r.Attempts); n > 0 {
		add(waits, r.Attempts[n-1].EndedAt, r.StartedAt)
	}
	if r.RetryAt.IsZero() {
		add(string(r.Status), r.StartedAt, endAt(r, now))
		said = append(said, l.status(string(r.Status))+" "+l.elapsed(endAt(r, now).Sub(r.StartedAt)))
	}
	t.Label = l.say("job.timeline_label", l.millis(r.LatenessMS), strings.Join(said, l.say("list.and")))
	return t
}

// waits is the class of a piece in which nothing runs.
const waits = "wait"
