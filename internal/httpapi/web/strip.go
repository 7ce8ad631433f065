package web

import (
	"fmt"
	"strings"

	"github.com/etcdcron/etcdcron/state"
)

// point is what a strip or a plot shows of a run.
type point struct {
	ID     string
	Status state.RunStatus
	MS     int64
	Times  int64 // scheduled times that it stands for
}

func pointOf(r *state.Run) point {
	return point{ID: r.ID, Status: r.Status, MS: r.DurationMS, Times: r.Times()}
}

// The measures of a strip, in its own units.
const (
	stripRuns   = 30
	stripHeight = 20 // of the highest bar
	stripFoot   = 4  // below the bars, for the marks that say a result by their place and not by color alone
	barStep     = 4
	barWidth    = 3
	leastBar    = 3
)

// ended are the results that a run can have, in the order in which they are told. Each has a shape of its own: a bar
// for what ran, with a foot when it failed and a gap when it was canceled, and a mark on the ground for what did not run.
var ended = [...]state.RunStatus{state.Succeeded, state.Failed, state.Canceled, state.Skipped, state.Missed}

// shape is all the bars of one result.
type shape struct {
	Class state.RunStatus
	Path  string
}

// strip is a job's last runs at a glance: one bar each, the newest on the right.
type strip struct {
	Width, Height int
	Shapes        []shape
	Label         string // all of it in words
}

// stripOf draws runs, given newest first.
func (l language) stripOf(points []point) strip {
	s := strip{Width: stripRuns * barStep, Height: stripHeight + stripFoot, Label: l.say("strip.none")}
	points = points[:min(len(points), stripRuns)]
	if len(points) == 0 {
		return s
	}
	var longest int64
	counts := make(map[state.RunStatus]int, len(ended))
	paths := make(map[state.RunStatus]*strings.Builder, len(ended))
	for _, p := range points {
		longest = max(longest, p.MS)
		counts[p.Status]++
	}
	for i, p := range points {
		if paths[p.Status] == nil {
			paths[p.Status] = new(strings.Builder)
		}
		drawBar(paths[p.Status], p, s.Width-(i+1)*barStep, longest)
	}
	said := make([]string, 0, len(ended)+1)
	for _, status := range ended {
		if counts[status] > 0 {
			s.Shapes = append(s.Shapes, shape{Class: status, Path: paths[status].String()})
			said = append(said, l.say("count."+string(status), counts[status]))
		}
	}
	if longest > 0 {
		said = append(said, l.say("strip.longest", l.millis(longest)))
	}
	s.Label = l.say("strip.label", len(points), strings.Join(said, l.say("list.and")))
	return s
}

// drawBar adds a run's bar to the path of its result.
func drawBar(b *strings.Builder, p point, x int, longest int64) {
	h := leastBar
	if longest > 0 {
		h = leastBar + int(p.MS*(stripHeight-leastBar)/longest)
	}
	switch p.Status { //nolint:exhaustive // what is not over is not drawn
	case state.Succeeded:
		fmt.Fprintf(b, "M%d %dh%dv%dh-%dz", x, stripHeight-h, barWidth, h, barWidth)
	case state.Failed: // down to the foot
		fmt.Fprintf(b, "M%d %dh%dv%dh-%dz", x, stripHeight-h, barWidth, h+stripFoot, barWidth)
	case state.Canceled: // an outline
		fmt.Fprintf(b, "M%d %dh%dv%dh-%dzm1 1v%dh1v-%dz", x, stripHeight-h, barWidth, h, barWidth, max(h-2, 1), max(h-2, 1))
	case state.Skipped:
		fmt.Fprintf(b, "M%d %dh%dv1h-%dz", x, stripHeight+1, barWidth, barWidth)
	case state.Missed:
		fmt.Fprintf(b, "M%d %dh%dv3h-%dz", x, stripHeight+1, barWidth, barWidth)
	}
}
