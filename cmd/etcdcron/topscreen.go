package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// topHead is how many lines stand above the sections of top, and sectionHead how many are above the rows of each.
const (
	topHead     = 2
	sectionHead = 2
)

// topLines is the screen of top, as high as the screen; without a height, all of it. pace is how many runs end in a
// second; nil when that is not known.
func topLines(v *inspect.Overview, pace *float64, root string, w when, screen term.Screen) []string {
	who := screen.Paint(term.Bad, "nobody leads")
	if v.Leader != nil {
		who = "leader " + term.Clean(v.Leader.Instance) + ", elected " + w.text(v.Leader.ElectedAt)
	}
	counts := []string{
		count(v.Jobs, "job"), painted(screen, term.Bad, v.Failing, "failing"), painted(screen, term.Caution, v.Paused, "paused"),
		painted(screen, term.Bad, v.Invalid, "invalid"), fmt.Sprintf("%d running", v.Running), fmt.Sprintf("%d waiting", v.Pending),
	}
	if pace != nil {
		counts = append(counts, strconv.FormatFloat(*pace, 'f', 1, 64)+" runs/s")
	}
	lines := []string{
		fitted(screen, w.now.Format("15:04:05")+"  "+root+"  "+who),
		fitted(screen, strings.Join(without(counts), ", ")),
	}
	room := [3]int{len(v.RunningRuns), len(v.NextJobs), len(v.FailingJobs)}
	if screen.Height > 0 {
		room = share(screen.Height-len(lines)-3*sectionHead-1, room) // the last line is left free
	}
	lines = append(lines, section(screen, runningTable(v.RunningRuns[:room[0]], v.Running, w))...)
	lines = append(lines, section(screen, nextTable(v.NextJobs[:room[1]], w))...)
	return append(lines, section(screen, failingTable(v.FailingJobs[:room[2]], v.Failing, w))...)
}

// runningRows is how many of the runs that go on the screen has room for.
func runningRows(v *inspect.Overview, screen term.Screen) int {
	if screen.Height == 0 {
		return len(v.RunningRuns)
	}
	return share(screen.Height-topHead-3*sectionHead-1, [3]int{len(v.RunningRuns), len(v.NextJobs), len(v.FailingJobs)})[0]
}

// share divides rows among sections that want some: half for the first, a quarter for each other, and what one does
// not want for those that do.
func share(rows int, want [3]int) (got [3]int) {
	rows = max(rows, 0)
	for i, part := range [3]int{rows / 2, rows / 4, rows / 4} {
		got[i] = min(want[i], part)
	}
	for i := range got {
		left := rows - got[0] - got[1] - got[2]
		got[i] += min(want[i]-got[i], left)
	}
	return got
}

// section is a table under an empty line; nothing when it has no rows.
func section(screen term.Screen, table *term.Table) []string {
	if table.Empty() {
		return nil
	}
	var b bytes.Buffer
	_ = table.Write(&b, screen) // a buffer takes everything
	return append([]string{""}, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")...)
}

// heading is the name of a section, and how many of all it shows unless that is all of them.
func heading(name string, shown, all int) string {
	if shown >= all {
		return name
	}
	return fmt.Sprintf("%s: %d OF %d", name, shown, all)
}

func runningTable(runs []inspect.RunningRun, all int, w when) *term.Table {
	name := heading("RUNNING", len(runs), all)
	table := term.NewTable(name, "RUN", "FOR", "TRY", "INSTANCE", "PROGRESS").GiveWay("INSTANCE", name)
	for i := range runs {
		r := &runs[i]
		progress := ""
		switch {
		case r.RetryAt != nil:
			progress = "next attempt " + term.Relative(*r.RetryAt, w.now)
		case r.Progress != nil:
			progress = shortProgress(r.Progress, topBar)
		}
		elapsed := ""
		if !r.StartedAt.IsZero() {
			elapsed = ongoing(r.StartedAt, w.now)
		}
		table.Row(r.Job, r.ID, elapsed, some(int64(r.Attempt)), r.Instance, progress)
	}
	return table
}

// shortProgress is a bar of that width, the share and the message, as far as they are known.
func shortProgress(p *state.Progress, width int) string {
	if p.Total <= 0 {
		return progressText(p)
	}
	share := min(max(p.Done, 0), p.Total) * 100 / p.Total
	return strings.TrimSpace(fmt.Sprintf("%s %d%% %s", term.Bar(p.Done, p.Total, width), share, firstLine(p.Message)))
}

// topBar is how wide a bar is in a table.
const topBar = 10

func nextTable(jobs []inspect.NextJob, w when) *term.Table {
	table := term.NewTable("NEXT", "DUE", "SCHEDULE", "ZONE").GiveWay("SCHEDULE", "NEXT")
	for i := range jobs {
		j := &jobs[i]
		table.Row(j.Job, w.text(j.At), j.Schedule, j.TimeZone)
	}
	return table
}

func failingTable(jobs []inspect.FailingJob, all int, w when) *term.Table {
	name := heading("FAILING", len(jobs), all)
	table := term.NewTable(name, "IN A ROW", "LAST", "ERROR").GiveWay(name)
	for i := range jobs {
		j := &jobs[i]
		table.Row(j.Job, term.Styled(term.Bad, strconv.FormatInt(j.Failures, 10)), w.text(j.At), firstLine(j.Error))
	}
	return table
}

// painted is a number of things in a style; "" for none.
func painted(screen term.Screen, style term.Style, n int, what string) string {
	if n == 0 {
		return ""
	}
	return screen.Paint(style, fmt.Sprintf("%d %s", n, what))
}

// without are the texts that are not empty.
func without(texts []string) []string {
	var left []string
	for _, t := range texts {
		if t != "" {
			left = append(left, t)
		}
	}
	return left
}

// fitted is a line that may be too long: its colours go with what is cut.
func fitted(screen term.Screen, line string) string {
	if plain := term.Plain(line); screen.Width > 0 && term.Width(plain) > screen.Width {
		return term.Cut(plain, screen.Width)
	}
	return line
}
