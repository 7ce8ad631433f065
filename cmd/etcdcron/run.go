package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func newRunCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Look at one run",
		Long:    "Look at one run of a job.",
		Example: "  etcdcron run show daily_billing 20261130T010000Z",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "show JOB RUN",
		Short: "Show all that is recorded of a run",
		Long: `Show all that is recorded of a run: how it ended and why, when it was due
and when it started, each of its attempts with its instance and fencing
token, how far it is or was, who asked for it, and the end of what it has
printed, 16 KiB at most.

Exit codes: 0 shown, however the run ended, 4 no such job or run.`,
		Example: `  etcdcron run show daily_billing 20261130T010000Z
  etcdcron run show daily_billing 20261130T010000Z -o json | jq .attempts`,
		Args:              aJobAndRun,
		ValidArgsFunction: o.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.showRun(ctx, args[0], args[1]) })
		},
	})
	return cmd
}

func (c *cluster) showRun(ctx context.Context, job, id string) error {
	w := c.o.when()
	d, err := inspect.Run(ctx, c.store, job, id, w.now)
	if err != nil {
		return err
	}
	return one(c.o, d, func() error { return c.o.runText(d, w) })
}

func (o *options) runText(d *inspect.RunDetails, w when) error {
	screen := o.screen(o.stdout)
	var b bytes.Buffer
	writeLabeled(&b, screen, runLines(d, w, screen))
	if len(d.Attempts) > 0 {
		b.WriteByte('\n')
		if err := attemptTable(&d.Run, w).Write(&b, screen); err != nil {
			return err
		}
	}
	if strings.TrimSpace(d.Output) != "" {
		fmt.Fprintf(&b, "\n%s\n", screen.Paint(term.Heading, "OUTPUT"))
		writeText(&b, d.Output, "  ")
	}
	_, err := o.stdout.Write(b.Bytes())
	return err
}

// writeText writes what a run has printed, line by line.
func writeText(b *bytes.Buffer, text, indent string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\r\n"), "\n") {
		fmt.Fprintln(b, strings.TrimRight(indent+term.Clean(line), " "))
	}
}

func runLines(d *inspect.RunDetails, w when, screen term.Screen) []labeled {
	r := &d.Run
	lines := []labeled{
		{label: "Run", text: r.ID},
		{label: "Job", text: r.Job},
		{label: "Status", text: string(r.Status), style: statusStyle(r.Status)},
		{label: "Reason", text: inspect.Reason(r.Reason)},
		{label: "Error", text: strings.TrimSpace(r.Error), style: term.Bad},
		{label: "Exit code", text: exitCodeText(r)},
		{label: "Scheduled", text: momentText(r.ScheduledAt, w)},
		{label: "Stands for", text: timesText(r, w)},
		{label: "Started", text: startText(r, w)},
		{label: "Finished", text: finishText(r, w)},
		{label: "Next attempt", text: momentText(r.RetryAt, w)},
		{label: "Progress", text: barText(r.Progress, w, screen)},
		{label: "Checkpoint", text: checkpointAge(d.Checkpoint, r, w)},
		{label: "Trigger", text: triggerText(r)},
		{label: "Asked by", text: colon(r.RequestedBy, r.RequestWhy)},
		{label: "Arguments", text: pairs(r.Args, "=")},
		{label: "Cancel", text: cancelText(d.Cancel, w)},
		{label: "Attempt", text: attemptText(r)},
	}
	if r.Attempt > 0 {
		return append(lines,
			labeled{label: "Instance", text: r.Instance},
			labeled{label: "Token", text: some(r.FencingToken)},
			labeled{label: "Term", text: some(r.Term)},
			labeled{label: "Time limit", text: limitText(r)})
	}
	return append(lines, labeled{label: "Recorded by", text: r.Instance}, labeled{label: "Term", text: some(r.Term)})
}

func exitCodeText(r *state.Run) string {
	if r.ExitCode == nil {
		return ""
	}
	return strconv.Itoa(*r.ExitCode)
}

// timesText is how many scheduled times a record stands for.
func timesText(r *state.Run, w when) string {
	if r.Times() == 1 {
		return ""
	}
	return fmt.Sprintf("%d scheduled times, the last %s", r.Times(), w.exact(r.Until))
}

func startText(r *state.Run, w when) string {
	text := momentText(r.StartedAt, w)
	if text != "" && r.Attempt == 1 && r.Trigger.Scheduled() {
		text += ", " + millis(r.LatenessMS) + " late"
	}
	return text
}

func finishText(r *state.Run, w when) string {
	switch {
	case r.Status == state.Running && r.RetryAt.IsZero() && !r.StartedAt.IsZero():
		return "not yet; it goes on for " + ongoing(r.StartedAt, w.now)
	case r.FinishedAt.IsZero() || r.StartedAt.IsZero():
		return ""
	}
	return fmt.Sprintf("%s, it took %s", w.exact(r.FinishedAt), millis(r.DurationMS))
}

// barWidth is how wide a bar of progress is beside other text.
const barWidth = 24

// barText is a bar of how far a run is, and the same in words.
func barText(p *state.Progress, w when, screen term.Screen) string {
	if p == nil {
		return ""
	}
	text := progressText(p)
	if !p.At.IsZero() {
		text += ", " + term.Ago(p.At, w.now)
	}
	bar := term.Bar(p.Done, p.Total, barWidth)
	if bar == "" {
		return text
	}
	const label = 14
	if screen.Width > 0 && label+barWidth+1+term.Width(text) > screen.Width {
		return bar + "\n" + text
	}
	return bar + " " + text
}

// checkpointAge is how big a checkpoint is and how old; the value is the job's own affair.
func checkpointAge(c *inspect.Checkpoint, r *state.Run, w when) string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("%s, written %s by attempt %d", count(c.Bytes, "byte"), term.Ago(c.At, w.now), c.Attempt)
	if c.Run != r.ID {
		text += " of " + c.Run
	}
	return text
}

func triggerText(r *state.Run) string {
	if r.RetryOf != "" {
		return fmt.Sprintf("%s of %s", r.Trigger, r.RetryOf)
	}
	return string(r.Trigger)
}

// colon is who did something and why, as far as it is known.
func colon(who, why string) string {
	if why == "" {
		return who
	}
	return cmp.Or(who, "somebody") + ": " + firstLine(why)
}

func cancelText(r *state.Request, w when) string {
	if r == nil {
		return ""
	}
	return "asked for " + term.Ago(r.At, w.now) + " by " + colon(cmp.Or(r.By, "somebody"), r.Reason)
}

func attemptText(r *state.Run) string {
	if r.Attempt == 0 {
		return ""
	}
	text := strconv.Itoa(r.Attempt)
	if r.Retries > 0 {
		text += fmt.Sprintf(", %d failed before", r.Retries)
	}
	if r.Recoveries > 0 {
		text += fmt.Sprintf(", %d cut off before", r.Recoveries)
	}
	return text
}

func limitText(r *state.Run) string {
	if r.TimeoutMS == 0 {
		return ""
	}
	return millis(r.TimeoutMS) + " for each attempt"
}

// attemptTable lists the attempts before the last, and what became of them.
func attemptTable(r *state.Run, w when) *term.Table {
	table := term.NewTable("ATTEMPT", "INSTANCE", "TOKEN", "STARTED", "TOOK", "END")
	for i := range r.Attempts {
		a := &r.Attempts[i]
		end := inspect.Reason(a.Reason)
		if a.Error != "" {
			end += ": " + firstLine(a.Error)
		}
		table.Row(strconv.Itoa(a.Attempt), a.Instance, some(a.FencingToken), w.exact(a.StartedAt), term.Elapsed(max(a.EndedAt.Sub(a.StartedAt), 1)), end)
	}
	return table
}
