package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// requestsText is a line for each request.
func requestsText(requests []state.Request, now time.Time) string {
	lines := make([]string, len(requests))
	for i := range requests {
		lines[i] = requestText(&requests[i], now)
	}
	return strings.Join(lines, "\n")
}

func requestText(r *state.Request, now time.Time) string {
	var text string
	switch r.Kind {
	case state.AskRetry:
		text = fmt.Sprintf("%s: retry of %s", r.ID, r.Run)
	case state.AskCancel:
		text = r.Run + ": to be canceled"
	case state.AskBackfill:
		text = fmt.Sprintf("%s: backfill from %s to %s, %d of %d begun", r.ID, term.Instant(r.From), term.Instant(r.To), r.Done, r.Total)
		if r.Done > 0 { // before, it is where the range begins
			text += ", next " + term.Instant(r.Next)
		}
	case state.AskTrigger:
		text = r.ID + ": trigger"
	case state.AskResign:
		text = fmt.Sprintf("the leader of term %d is to resign", r.Term)
	}
	if len(r.Args) > 0 {
		text += " with " + pairs(r.Args, "=")
	}
	if r.By != "" {
		text += ", by " + r.By
	} else {
		text += ", asked"
	}
	text += " " + term.Ago(r.At, now)
	if r.Reason != "" {
		text += ": " + firstLine(r.Reason)
	}
	return text
}
