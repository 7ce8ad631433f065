package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// describedLines is how much describe shows of the last run's output.
const describedLines = 10

func newDescribeCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "describe JOB",
		Short: "Show a job: definition, state, next times, last runs, output",
		Long: `Show a job: its definition, where it stands, its next times, its last runs,
and the end of what the last one that is over has printed.`,
		Example:           "  etcdcron describe daily_billing",
		Args:              aJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.describe(ctx, args[0]) })
		},
	}
}

func (c *cluster) describe(ctx context.Context, name string) error {
	w := c.o.when()
	d, err := inspect.Describe(ctx, c.store, name, w.now)
	if err != nil {
		return err
	}
	if err := one(c.o, d, func() error { return c.o.describeText(d, w) }); err != nil {
		return err
	}
	c.noteNoLeader(ctx)
	return nil
}

func (o *options) describeText(d *inspect.Description, w when) error {
	screen := o.screen(o.stdout)
	var b bytes.Buffer
	writeLabeled(&b, screen, descriptionLines(d, w.now))
	if zone, err := time.LoadLocation(d.Definition.TimeZone); err == nil && len(d.Next) > 0 {
		b.WriteByte('\n')
		if err := timeTable(d.Next, zone, w.now).Write(&b, screen); err != nil {
			return err
		}
	}
	if len(d.Runs) > 0 {
		b.WriteByte('\n')
		if err := runTable(d.Runs, w, o.output.value == asWide).Write(&b, screen); err != nil {
			return err
		}
	}
	writeOutput(&b, screen, d.Runs)
	_, err := o.stdout.Write(b.Bytes())
	return err
}

// writeLabeled writes a line for each label, more where its text has more; none where it has none.
func writeLabeled(b *bytes.Buffer, screen term.Screen, lines []labeled) {
	for _, line := range lines {
		label := line.label + ":"
		for text := range strings.SplitSeq(line.text, "\n") {
			if line.text != "" {
				fmt.Fprintf(b, "%s %s\n", screen.Paint(term.Heading, fmt.Sprintf("%-13s", label)), screen.Paint(line.style, term.Clean(text)))
			}
			label = ""
		}
	}
}

// writeOutput shows the end of what the last run that is over has printed.
func writeOutput(b *bytes.Buffer, screen term.Screen, runs []state.Run) {
	last := slices.IndexFunc(runs, func(r state.Run) bool { return r.Attempt > 0 && r.Status.Final() })
	if last < 0 || strings.TrimSpace(runs[last].Output) == "" {
		return
	}
	lines := strings.Split(strings.Trim(runs[last].Output, "\r\n"), "\n")
	title := "OUTPUT of " + runs[last].ID
	if len(lines) > describedLines {
		title += fmt.Sprintf(", its last %d lines", describedLines)
		lines = lines[len(lines)-describedLines:]
	}
	fmt.Fprintf(b, "\n%s\n", screen.Paint(term.Heading, term.Clean(title)))
	writeText(b, strings.Join(lines, "\n"), "  ")
}

// labeled is a line of a description; one without a text is left out.
type labeled struct {
	label, text string
	style       term.Style
}

func descriptionLines(d *inspect.Description, now time.Time) []labeled {
	spec, st := &d.Definition, &d.Status
	lines := []labeled{
		{label: "Job", text: spec.Name},
		{label: "Description", text: spec.Description},
		{label: "Schedule", text: scheduleText(spec)},
		{label: "Target", text: spec.Target},
		{label: "Source", text: spec.Source},
		{label: "Labels", text: pairs(spec.Labels, "=")},
	}
	if d.Invalid != nil {
		lines = append(lines, labeled{label: "Invalid", text: *d.Invalid, style: term.Bad})
	} else {
		lines = append(lines,
			labeled{label: "Start", text: boundText(spec.Start, now)},
			labeled{label: "End", text: boundText(spec.End, now)},
			labeled{label: "Max runs", text: maxRunsText(spec, st)},
			labeled{label: "Jitter", text: jitterText(spec)},
			labeled{label: "Overlap", text: overlapText(spec)},
			labeled{label: "Catch-up", text: catchUpText(spec)},
			labeled{label: "Recovery", text: recoveryText(spec)},
			labeled{label: "Retry", text: retryText(spec.Retry)},
			labeled{label: "Checkpoint", text: checkpointText(spec)},
			labeled{label: "Alert", text: alertText(spec.Alert)},
			labeled{label: "Limits", text: fmt.Sprintf("timeout %s, lock TTL %s, grace %s", elapsed(spec.Timeout), elapsed(spec.LockTTL), elapsed(spec.Grace))},
		)
	}
	state, style := stateText(d, now)
	lines = append(lines, labeled{label: "State", text: state, style: style},
		labeled{label: "Alerting", text: incidentsText(st.Alerting, now), style: term.Bad},
		labeled{label: "Running", text: liveText(d.Live, now)},
		labeled{label: "Requests", text: requestsText(d.Requests, now)})
	if st.LastStatus != "" {
		lines = append(lines, labeled{label: "Last run", text: fmt.Sprintf("%s %s, took %s", st.LastStatus,
			term.Relative(st.LastFinishedAt, now), millis(st.LastDurationMS))})
	}
	return append(lines,
		labeled{label: "Last error", text: firstLine(st.LastError), style: term.Bad},
		labeled{label: "Success", text: outcomesText(d.Outcomes, now)},
		labeled{label: "Totals", text: totals(st)},
	)
}

// stateText says in words whether the job runs.
func stateText(d *inspect.Description, now time.Time) (string, term.Style) {
	var parts []string
	style := term.Style("")
	if d.Status.Running > 0 {
		text := "running"
		if d.Status.Running > 1 {
			text = fmt.Sprintf("%d running", d.Status.Running)
		}
		parts = append(parts, text)
	}
	if d.Status.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", d.Status.Pending))
	}
	switch c := &d.Control; {
	case d.Definition.Retired:
		parts, style = append(parts, "retired: the leader no longer has it"), term.Caution
	case c.Paused:
		parts, style = append(parts, inspect.Paused(c, now)), term.Caution
	case len(parts) == 0 && d.Invalid == nil && len(d.Next) == 0:
		parts, style = append(parts, "over: it is not due any more"), term.Faint
	case len(parts) == 0:
		parts = append(parts, "idle")
	}
	return strings.Join(parts, "; "), style
}

// scheduleText is the schedule as it was written, and in words.
func scheduleText(spec *state.Spec) string {
	text := strings.TrimSpace(spec.Schedule + "  " + spec.TimeZone)
	if words := inWords(spec); words != "" {
		text += "\n" + words
	}
	return text
}

// boundText is the first or the last scheduled time that there can be.
func boundText(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return term.Instant(t) + ", " + term.Relative(t, now)
}

func maxRunsText(spec *state.Spec, st *state.JobStatus) string {
	if spec.MaxRuns == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d done", st.ScheduledRunsTotal, spec.MaxRuns)
}

// jitterText says how far the job's times may lie behind the schedule, and how far they do.
func jitterText(spec *state.Spec) string {
	if spec.Jitter == 0 {
		return ""
	}
	return fmt.Sprintf("up to %s, this job %s", elapsed(spec.Jitter), term.Elapsed(time.Duration(spec.Delay)))
}

func catchUpText(spec *state.Spec) string {
	text := spec.CatchUp + ", within " + term.Elapsed(time.Duration(spec.Window))
	if spec.CatchUpMax > 0 {
		text += fmt.Sprintf(", at most %d of them", spec.CatchUpMax)
	}
	return text
}

func retryText(r *state.RetrySpec) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("at most %d attempts, after a random pause of up to %s, times %g each, at most %s",
		r.MaxAttempts, elapsed(r.Initial), r.Multiplier, elapsed(r.Max))
}

func checkpointText(spec *state.Spec) string {
	if spec.Checkpoint == state.PerJob {
		return "of the job, carried on until a run succeeds"
	}
	return "" // of each run, as most are
}

func overlapText(spec *state.Spec) string {
	switch cronrunner.OverlapPolicy(spec.Overlap) { //nolint:exhaustive // the others have no limit
	case cronrunner.Queue:
		return fmt.Sprintf("%s, at most %d waiting", spec.Overlap, spec.Limit)
	case cronrunner.Allow:
		return fmt.Sprintf("%s, at most %d at once", spec.Overlap, spec.Limit)
	}
	return spec.Overlap
}

func recoveryText(spec *state.Spec) string {
	if spec.Recovery == string(cronrunner.Resume) {
		return fmt.Sprintf("%s, at most %d times", spec.Recovery, spec.Recoveries)
	}
	return spec.Recovery
}

func totals(st *state.JobStatus) string {
	parts := []string{
		fmt.Sprintf("%d succeeded", st.SucceededTotal),
		fmt.Sprintf("%d failed", st.FailedTotal),
	}
	if st.CanceledTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d canceled", st.CanceledTotal))
	}
	if st.SkippedTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped (%s)", st.SkippedTotal, reasons(st.SkippedByReason)))
	}
	if st.MissedTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d missed (%s)", st.MissedTotal, reasons(st.MissedByReason)))
	}
	if r, ok := st.SuccessRate(); ok {
		parts = append(parts, "success "+rate(&r))
	}
	return strings.Join(parts, ", ")
}

// reasons lists how often each reason was given.
func reasons(counts map[string]int64) string {
	texts := make(map[string]int64, len(counts))
	for reason, n := range counts {
		texts[inspect.Reason(reason)] += n
	}
	return pairs(texts, ": ")
}

// pairs lists a mapping by its keys.
func pairs[V any](m map[string]V, between string) string {
	parts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s%s%v", key, between, m[key]))
	}
	return strings.Join(parts, ", ")
}
