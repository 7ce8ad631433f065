package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// liveText is a line for each run that is running.
func liveText(runs []inspect.LiveRun, now time.Time) string {
	lines := make([]string, len(runs))
	for i := range runs {
		r := &runs[i]
		lines[i] = r.ID + ": "
		if r.RetryAt != nil {
			lines[i] += fmt.Sprintf("attempt %d failed, the next one %s", r.Attempt, term.Relative(*r.RetryAt, now))
		} else {
			lines[i] += "for " + ongoing(r.StartedAt, now)
			if r.Attempt > 1 {
				lines[i] += fmt.Sprintf(", attempt %d", r.Attempt)
			}
		}
		lines[i] += " on " + r.Instance
		if r.Progress != nil {
			lines[i] += "; " + progressText(r.Progress)
		}
	}
	return strings.Join(lines, "\n")
}

// progressText is how far a run is: 40 of 100 (40%), its message.
func progressText(p *state.Progress) string {
	text := strconv.FormatInt(p.Done, 10)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d (%d%%)", p.Total, min(max(p.Done, 0), p.Total)*100/p.Total)
	}
	if p.Message != "" {
		text += ", " + firstLine(p.Message)
	}
	return text
}
