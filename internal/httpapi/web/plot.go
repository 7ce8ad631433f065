package web

import (
	"strconv"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// The measures of a plot, in its own units, which are about pixels.
const (
	plotRuns   = 60
	plotWidth  = 1100
	plotHeight = 190
	plotRight  = plotWidth - 60 // beside it are the words of the scale: where the newest run is, so that a narrow screen has both
	plotTop    = 24             // for those of the timeout
	plotFoot   = 10             // for the marks below the ground
	plotGround = plotHeight - plotFoot
	plotFloor  = 2 // the least height of a bar
)

// plot is the durations of a job's last runs, the newest on the right.
type plot struct {
	Width, Height int
	Right         int
	Bars          []plotBar
	Lines         []plotLine
	Timeout       *plotLine
	Label         string
}

// plotBar is a run.
type plotBar struct {
	Class               state.RunStatus
	X, Y, Width, Height int
	Foot                string // the path of the mark that says the result; "" for none
	Title               string
}

// plotLine is a line of the scale.
type plotLine struct {
	Y    int
	Text string
}

// plotOf draws runs, given newest first; nil when none of them ran.
func (l language) plotOf(points []point, timeout time.Duration) *plot {
	points = points[:min(len(points), plotRuns)]
	var longest int64
	ran := 0
	for _, p := range points {
		longest = max(longest, p.MS)
		if p.Status != state.Skipped && p.Status != state.Missed {
			ran++
		}
	}
	if ran == 0 {
		return nil
	}
	top, step := scaleOf(max(longest, 1))
	limit := timeout.Milliseconds()
	// The timeout belongs on the scale when it does not press the durations down to where nothing can be read.
	if limit > 0 && limit <= 4*longest {
		top, step = scaleOf(max(longest, limit))
	}
	p := &plot{
		Width: plotWidth, Height: plotHeight, Right: plotRight,
		Label: l.say("job.durations_label", len(points), l.millis(longest)),
	}
	y := func(ms int64) int { return plotGround - int(ms*(plotGround-plotTop)/top) }
	for ms := int64(0); ms <= top; ms += step {
		p.Lines = append(p.Lines, plotLine{Y: y(ms), Text: l.millis(ms)})
	}
	switch {
	case limit <= 0:
	case limit <= top:
		p.Timeout = &plotLine{Y: y(limit), Text: l.say("job.timeout_line", l.millis(limit))}
	default:
		p.Timeout = &plotLine{Y: plotTop * 3 / 4, Text: l.say("job.timeout_above", l.millis(limit))}
	}
	// Bars are as wide as sixty are, at least, and not so wide that three look like a wall.
	room := min(plotRight/max(len(points), 1), 24)
	for i, run := range points {
		p.Bars = append(p.Bars, l.barOf(run, plotRight-(i+1)*room, max(room-2, 2), y(run.MS)))
	}
	return p
}

// barOf draws a run whose top is at y.
func (l language) barOf(run point, x, width, y int) plotBar {
	b := plotBar{
		Class: run.Status, X: x, Y: min(y, plotGround-plotFloor), Width: width,
		Title: run.ID + " " + l.status(string(run.Status)),
	}
	b.Height = plotGround - b.Y
	mark := func(height int) string {
		return "M" + strconv.Itoa(x) + " " + strconv.Itoa(plotGround+3) + "h" + strconv.Itoa(width) + "v" + strconv.Itoa(height) + "h-" + strconv.Itoa(width) + "z"
	}
	switch run.Status { //nolint:exhaustive // what succeeded is a bar and nothing else
	case state.Skipped:
		b.Height, b.Foot = 0, mark(1)
	case state.Missed:
		b.Height, b.Foot = 0, mark(4)
	case state.Failed:
		b.Foot = mark(6)
	}
	if b.Height > 0 {
		b.Title += ", " + l.millis(run.MS)
	} else if run.Times > 1 {
		b.Title += ", " + l.say("times.many", run.Times)
	}
	return b
}

// scaleOf is the top of a scale that has most on it, and the step between its lines: one that people count in.
func scaleOf(most int64) (top, step int64) {
	const lines = 4
	for _, step := range scaleSteps {
		if step*lines >= most {
			return (most + step - 1) / step * step, step
		}
	}
	step = (most/lines/scaleDay + 1) * scaleDay
	return (most + step - 1) / step * step, step
}

// scaleDay is a day in milliseconds.
const scaleDay = 24 * 60 * 60 * 1000

// scaleSteps are the steps of a scale, in milliseconds.
var scaleSteps = [...]int64{
	1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
	3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, scaleDay,
}
