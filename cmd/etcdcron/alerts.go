package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// alertText says when a job alerts, and who is told; "" if it never does.
func alertText(a *state.AlertSpec) string {
	if a == nil {
		return ""
	}
	var when []string
	if a.AfterFailures > 0 {
		when = append(when, "after "+failures(int64(a.AfterFailures)))
	}
	if a.Missed {
		when = append(when, "when a time is missed")
	}
	if a.Overrun > 0 {
		when = append(when, "when a run takes longer than "+elapsed(a.Overrun))
	}
	text := strings.Join(when, ", ")
	switch {
	case a.Notify == "":
		return text + "; in log and metrics alone"
	case a.Recovered:
		text += "; also when it has recovered"
	}
	return text + "; told to " + a.Notify
}

// incidentsText is a line for each incident, the oldest first.
func incidentsText(incidents []state.Incident, now time.Time) string {
	lines := make([]string, len(incidents))
	for i := range incidents {
		in := &incidents[i]
		text := string(in.Kind) + ": "
		switch in.Kind {
		case state.AlertFailing:
			text += fmt.Sprintf("%s, since run %s, which ended %s", failures(in.Count), in.Run, term.Ago(in.Since, now))
		case state.AlertMissed:
			text += fmt.Sprintf("%s, from %s on", count(int(in.Count), "scheduled time"), term.Instant(in.Since))
		case state.AlertOverrun:
			text += fmt.Sprintf("run %s, which began %s", in.Run, term.Ago(in.Since, now))
		case state.AlertRecovered: // of no incident
		}
		if !in.Open() {
			text += "; over " + term.Ago(in.ResolvedAt, now)
		}
		if in.Untold || !in.Open() {
			text += "; not told yet"
		}
		lines[i] = text
	}
	return strings.Join(lines, "\n")
}

func failures(n int64) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures in a row", n)
}

// alertingCell names the incidents that last.
func alertingCell(j *inspect.Job) any {
	var kinds []string
	for i := range j.Alerting {
		if in := &j.Alerting[i]; in.Open() && !slices.Contains(kinds, string(in.Kind)) {
			kinds = append(kinds, string(in.Kind))
		}
	}
	return term.Styled(term.Bad, strings.Join(kinds, ", "))
}

// outcomesText is the success rate and the mean duration in each window: 24h 99% of 1440, mean 1.2s; 7d …. It is ""
// when there was no run in any.
func outcomesText(outcomes []state.Outcomes, now time.Time) string {
	parts := make([]string, len(outcomes))
	runs := int64(0)
	for i := range outcomes {
		o := &outcomes[i]
		n := o.Succeeded + o.Failed
		runs += n
		parts[i] = elapsed(o.Window) + " no runs"
		if n > 0 {
			parts[i] = fmt.Sprintf("%s %s of %d, mean %s", elapsed(o.Window), rate(o.SuccessRate), n, term.Elapsed(time.Duration(*o.MeanDurationMS*float64(time.Millisecond))))
		}
		if o.Cut {
			parts[i] += fmt.Sprintf(" (counted from %s on)", term.Ago(o.Since, now))
		}
	}
	if runs == 0 {
		return ""
	}
	return strings.Join(parts, "; ")
}
