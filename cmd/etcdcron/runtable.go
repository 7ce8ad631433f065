package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func runTable(runs []state.Run, w when, wide bool) *term.Table {
	return tableOfRuns(runs, w, wide, false)
}

// allRunsTable is a table of runs of more than one job.
func allRunsTable(runs []state.Run, w when, wide bool) *term.Table {
	return tableOfRuns(runs, w, wide, true)
}

func tableOfRuns(runs []state.Run, w when, wide, jobs bool) *term.Table {
	header := []string{"RUN", "STATUS", "SCHEDULED", "DURATION", "NOTE"}
	if wide {
		header = []string{"RUN", "STATUS", "TRIGGER", "SCHEDULED", "STARTED", "LATENESS", "DURATION", "ATTEMPT", "INSTANCE", "ASKED-BY", "NOTE"}
	}
	if jobs {
		header = append([]string{"JOB"}, header...)
	}
	table := term.NewTable(header...).GiveWay("JOB")
	for i := range runs {
		r := &runs[i]
		var cells []any
		if jobs {
			cells = append(cells, r.Job)
		}
		if wide {
			cells = append(cells, r.ID, statusCell(r.Status), string(r.Trigger), w.exact(r.ScheduledAt), w.exact(r.StartedAt), latenessCell(r),
				durationCell(r, w.now), some(int64(r.Attempt)), r.Instance, r.RequestedBy, wideNote(r))
		} else {
			cells = append(cells, r.ID, statusCell(r.Status), w.text(r.ScheduledAt), durationCell(r, w.now), noteCell(r, false))
		}
		table.Row(cells...)
	}
	return table
}

func latenessCell(r *state.Run) string {
	if r.StartedAt.IsZero() {
		return ""
	}
	return millis(r.LatenessMS)
}

func durationCell(r *state.Run, now time.Time) string {
	switch {
	case r.Status == state.Running && !r.StartedAt.IsZero():
		return ongoing(r.StartedAt, now) + " so far"
	case r.FinishedAt.IsZero() || r.StartedAt.IsZero():
		return ""
	}
	return millis(r.DurationMS)
}

// millis is a recorded duration: whole milliseconds, and never no time at all.
func millis(ms int64) string { return term.Elapsed(max(time.Duration(ms)*time.Millisecond, 1)) }

// ongoing is how long what began at start has gone on.
func ongoing(start, now time.Time) string {
	return term.Elapsed(max(now.Sub(start).Round(time.Second), 0))
}

// wideNote is the note of a table that has room: what was asked for comes first.
func wideNote(r *state.Run) string {
	var parts []string
	if r.RetryOf != "" {
		parts = append(parts, "retry of "+r.RetryOf)
	}
	if len(r.Args) > 0 {
		parts = append(parts, "with "+pairs(r.Args, "="))
	}
	if r.RequestWhy != "" {
		parts = append(parts, "asked for: "+firstLine(r.RequestWhy))
	}
	if note := noteCell(r, true); note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, "; ")
}

// noteCell is why a run ended as it did: the reason that the record gives, and the error's first line;
// before that how many times the record is for, and which attempt it was, unless a column has that.
func noteCell(r *state.Run, hasAttempt bool) string {
	var parts []string
	if r.Times() > 1 {
		parts = append(parts, fmt.Sprintf("%d times", r.Times()))
	}
	if r.Attempt > 1 && !hasAttempt {
		parts = append(parts, fmt.Sprintf("attempt %d", r.Attempt))
	}
	if r.Reason != "" && (r.Error == "" || !inError(r.Reason)) {
		parts = append(parts, inspect.Reason(r.Reason))
	}
	if r.Error != "" {
		parts = append(parts, firstLine(r.Error))
	}
	return strings.Join(parts, ": ")
}

// inError reports whether the error of a run with that reason says it too.
func inError(reason string) bool {
	return reason == state.ReasonRequested || reason == state.ReasonReplaced
}

// firstLine is the first line of a text, with a sign that there are more.
func firstLine(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first = strings.TrimRight(first, " \r") + " …"
	}
	return first
}
