package web

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// fact is a line of a list of facts.
type fact struct {
	Name, Text string
	Code       bool // it is a command, or the like
}

// policies is a job's definition in words.
func (l language) policies(spec *state.Spec, st *state.JobStatus) []fact {
	span := func(d state.Duration) string { return l.elapsed(time.Duration(d)) }
	all := []fact{{Name: l.say("policy.schedule"), Text: spec.Schedule, Code: true}, {Name: l.say("policy.zone"), Text: spec.TimeZone}}
	add := func(name, text string) {
		if text != "" {
			all = append(all, fact{Name: l.say("policy." + name), Text: text})
		}
	}
	if spec.Target != "" {
		all = append(all, fact{Name: l.say("policy.target"), Text: spec.Target, Code: true})
	}
	add("source", spec.Source)
	add("labels", labelsText(spec.Labels))
	switch cronrunner.OverlapPolicy(spec.Overlap) {
	case cronrunner.Queue, cronrunner.Allow:
		add("overlap", l.say("overlap."+spec.Overlap, spec.Limit))
	default:
		add("overlap", l.say("overlap."+spec.Overlap))
	}
	catchUp := l.say("catch_up.none")
	if spec.CatchUp != "none" {
		catchUp = l.say("catch_up."+spec.CatchUp, span(spec.Window))
	}
	if spec.CatchUpMax > 0 {
		catchUp += l.say("list.and") + l.say("catch_up.limit", spec.CatchUpMax)
	}
	add("catch_up", catchUp)
	if spec.Recovery == string(cronrunner.Resume) {
		add("recovery", l.say("recovery.resume", spec.Recoveries))
	} else {
		add("recovery", l.say("recovery.fail"))
	}
	if r := spec.Retry; r != nil && r.MaxAttempts > 1 {
		add("retry", l.say("retry.some", r.MaxAttempts, span(r.Initial), span(r.Max)))
	} else {
		add("retry", l.say("retry.none"))
	}
	if spec.Checkpoint == state.PerJob {
		add("checkpoint", l.say("checkpoint.job"))
	} else {
		add("checkpoint", l.say("checkpoint.run"))
	}
	add("limits", l.say("limits.text", span(spec.Timeout), span(spec.LockTTL), span(spec.Grace)))
	add("alert", l.alert(spec.Alert))
	if spec.Jitter > 0 {
		add("jitter", l.say("jitter.text", span(spec.Jitter), span(spec.Delay)))
	}
	add("bounds", l.bounds(spec, st))
	return all
}

// alert says when a job alerts, and whom; "" if it never does.
func (l language) alert(a *state.AlertSpec) string {
	if a == nil {
		return ""
	}
	var said []string
	if a.AfterFailures > 0 {
		said = append(said, l.say("alert.failing", a.AfterFailures))
	}
	if a.Missed {
		said = append(said, l.say("alert.missed"))
	}
	if a.Overrun > 0 {
		said = append(said, l.say("alert.overrun", l.elapsed(time.Duration(a.Overrun))))
	}
	text := strings.Join(said, l.say("list.and"))
	if a.Notify == "" {
		return text + l.say("alert.quiet")
	}
	return text + l.say("alert.told", a.Notify)
}

// incident says what somebody is to look at.
func (l language) incident(in *state.Incident, now time.Time) string {
	switch in.Kind {
	case state.AlertFailing:
		return l.say("incident.failing", in.Count, l.relative(in.Since, now))
	case state.AlertMissed:
		return l.say("incident.missed", in.Count, stamp(in.Since))
	case state.AlertOverrun:
		return l.say("incident.overrun", in.Run, l.relative(in.Since, now))
	case state.AlertRecovered: // of no incident
	}
	return string(in.Kind)
}

func (l language) bounds(spec *state.Spec, st *state.JobStatus) string {
	var said []string
	if !spec.Start.IsZero() {
		said = append(said, l.say("bounds.start", stamp(spec.Start)))
	}
	if !spec.End.IsZero() {
		said = append(said, l.say("bounds.end", stamp(spec.End)))
	}
	if spec.MaxRuns > 0 {
		said = append(said, l.say("bounds.runs", st.ScheduledRunsTotal, spec.MaxRuns))
	}
	return strings.Join(said, l.say("list.and"))
}

func labelsText(labels map[string]string) string {
	said := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		said = append(said, name+"="+labels[name])
	}
	return strings.Join(said, ", ")
}

// totals is what a job's runs came to.
func (l language) totals(st *state.JobStatus) []fact {
	var all []fact
	if rate, ok := st.SuccessRate(); ok {
		all = append(all,
			fact{Name: l.say("totals.rate"), Text: percent(rate)},
			fact{Name: l.say("totals.mean"), Text: l.millis(int64(st.MeanDurationMS))},
			fact{Name: l.say("totals.max"), Text: l.millis(st.MaxDurationMS)})
	}
	for _, t := range []struct {
		name string
		n    int64
		by   map[string]int64
	}{
		{l.status("succeeded"), st.SucceededTotal, nil},
		{l.status("failed"), st.FailedTotal, nil},
		{l.status("canceled"), st.CanceledTotal, nil},
		{l.status("skipped"), st.SkippedTotal, st.SkippedByReason},
		{l.status("missed"), st.MissedTotal, st.MissedByReason},
		{l.say("totals.retried"), st.RetriedTotal, nil},
		{l.say("totals.recovered"), st.RecoveredTotal, nil},
	} {
		if t.n == 0 {
			continue
		}
		text := number(t.n)
		if len(t.by) > 0 {
			text += " – " + l.reasons(t.by)
		}
		all = append(all, fact{Name: t.name, Text: text})
	}
	return all
}

// reasons says how often each reason was given.
func (l language) reasons(counts map[string]int64) string {
	said := make([]string, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		said = append(said, l.reason(reason)+" "+number(counts[reason]))
	}
	return strings.Join(said, l.say("list.and"))
}
