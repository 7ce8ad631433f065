package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// requests are what was asked of a job and not acted on yet, the oldest first, and cancels last.
func (c *cluster) requests(ctx context.Context, job string) ([]state.Request, error) {
	all, err := c.store.Requests(ctx)
	if err != nil {
		return nil, err
	}
	ofJob := []state.Request{}
	for _, r := range all {
		if r.Job == job {
			ofJob = append(ofJob, r.Request)
		}
	}
	return ofJob, nil
}

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
		text = fmt.Sprintf("%s: backfill from %s to %s, %d of %d begun", r.ID, instant(r.From), instant(r.To), r.Done, r.Total)
		if r.Done > 0 { // before, it is where the range begins
			text += ", next " + instant(r.Next)
		}
	case state.AskTrigger:
		text = r.ID + ": trigger"
	}
	if len(r.Args) > 0 {
		text += " with " + pairs(r.Args, "=")
	}
	if r.By != "" {
		text += ", by " + r.By
	} else {
		text += ", asked"
	}
	text += " " + ago(r.At, now)
	if r.Reason != "" {
		text += ": " + firstLine(r.Reason)
	}
	return text
}
