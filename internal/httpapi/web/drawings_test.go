package web

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

func TestStrip(t *testing.T) {
	t.Parallel()
	none := english.stripOf(nil)
	require.Empty(t, none.Shapes)
	require.Equal(t, "no run on record", none.Label)

	s := english.stripOf([]point{
		{Status: state.Failed, MS: 2000}, {Status: state.Succeeded, MS: 1000}, {Status: state.Skipped}, {Status: state.Missed, Times: 3}, {Status: state.Canceled, MS: 100},
	})
	require.Equal(t, "Last 5 runs, the newest on the right: 1 succeeded, 1 failed, 1 canceled, 1 skipped, 1 missed, the longest 2s", s.Label)
	require.Len(t, s.Shapes, 5)
	// The newest is on the right, as high as can be, and a failure stands on the foot.
	require.Equal(t, shape{state.Failed, "M116 0h3v24h-3z"}, s.Shapes[1])
	require.Equal(t, shape{state.Succeeded, "M112 9h3v11h-3z"}, s.Shapes[0])
	// No two results have the same shape: color is not the only sign.
	seen := make(map[string]bool)
	for _, p := range []state.RunStatus{state.Succeeded, state.Failed, state.Canceled, state.Skipped, state.Missed} {
		one := english.stripOf([]point{{Status: p, MS: 10}})
		require.False(t, seen[one.Shapes[0].Path], p)
		seen[one.Shapes[0].Path] = true
	}
	many := make([]point, 100)
	for i := range many {
		many[i] = point{Status: state.Succeeded, MS: int64(i)}
	}
	require.Equal(t, stripRuns, strings.Count(english.stripOf(many).Shapes[0].Path, "M"))
}

func TestPlot(t *testing.T) {
	t.Parallel()
	require.Nil(t, english.plotOf(nil, time.Minute))
	require.Nil(t, english.plotOf([]point{{Status: state.Skipped}}, time.Minute), "nothing ran")

	p := english.plotOf([]point{{ID: "b", Status: state.Failed, MS: 9000}, {ID: "a", Status: state.Succeeded, MS: 3000}, {ID: "z", Status: state.Missed, Times: 4}}, 20*time.Second)
	require.Equal(t, "timeout 20s", p.Timeout.Text)
	require.Equal(t, []string{"0s", "5s", "10s", "15s", "20s"}, texts(p.Lines))
	require.Greater(t, p.Bars[0].X, p.Bars[1].X, "the newest is on the right")
	require.Equal(t, "b failed, 9s", p.Bars[0].Title)
	require.Equal(t, "z missed, 4 times", p.Bars[2].Title)
	require.Zero(t, p.Bars[2].Height)
	for _, b := range p.Bars {
		require.Equal(t, b.Class != state.Succeeded, b.Foot != "", "color is not the only sign")
	}

	// A timeout that is far above does not press the bars down.
	p = english.plotOf([]point{{Status: state.Succeeded, MS: 900}}, time.Hour)
	require.Equal(t, "timeout 1h, above this scale", p.Timeout.Text)
	require.Less(t, p.Timeout.Y, plotTop)
	require.Equal(t, []string{"0s", "500ms", "1s"}, texts(p.Lines))
	require.Nil(t, english.plotOf([]point{{Status: state.Succeeded, MS: 900}}, 0).Timeout)

	// All of it stays inside, whatever the durations.
	for _, ms := range []int64{0, 1, 999, 60_001, 86_400_000, 400 * 86_400_000} {
		many := make([]point, 200)
		for i := range many {
			many[i] = point{Status: state.Failed, MS: ms * int64(i) / 200}
		}
		p := english.plotOf(many, time.Hour)
		require.Len(t, p.Bars, plotRuns)
		require.LessOrEqual(t, len(p.Lines), 6)
		for _, b := range p.Bars {
			require.GreaterOrEqual(t, b.X, 0)
			require.LessOrEqual(t, b.X+b.Width, plotRight)
			require.GreaterOrEqual(t, b.Y, plotTop)
			require.Equal(t, plotGround, b.Y+b.Height)
		}
	}
}

func texts(lines []plotLine) (all []string) {
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return all
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	now := begins.Add(time.Hour)
	r := succeeded("a", begins, time.Minute)
	require.Nil(t, english.timelineOf(&state.Run{Status: state.Skipped}, time.Minute, now), "it never began")

	r.LatenessMS = 60_000 // it waited for a minute
	require.Equal(t, 2*time.Minute, stretchOf(&r, now))
	line := english.timelineOf(&r, 4*time.Minute, now)
	require.Equal(t, []piece{{Class: waits, X: 0, Width: 50, Y: 6, Height: 2}, {Class: "succeeded", X: 50, Width: 50, Y: 2, Height: 10}}, line.Pieces)
	require.Equal(t, "Started 1m after its scheduled time; succeeded 1m", line.Label)

	// An earlier attempt, and the wait for the next one.
	r = succeeded("a", begins, 4*time.Minute)
	r.Attempt, r.StartedAt = 2, begins.Add(3*time.Minute)
	r.Attempts = []state.Attempt{{Attempt: 1, StartedAt: begins, EndedAt: begins.Add(time.Minute), Reason: state.ReasonTimeout}}
	line = english.timelineOf(&r, stretchOf(&r, now), now)
	require.Equal(t, []piece{
		{Class: "failed", X: 0, Width: 50, Y: 2, Height: 10}, {Class: waits, X: 50, Width: 100, Y: 6, Height: 2}, {Class: "succeeded", X: 150, Width: 50, Y: 2, Height: 10},
	}, line.Pieces)

	// One that goes on ends now, and one that waits for its next attempt has nothing that goes on.
	r.Status, r.FinishedAt = state.Running, time.Time{}
	require.Equal(t, time.Hour, stretchOf(&r, now))
	r.RetryAt = now.Add(time.Minute)
	line = english.timelineOf(&r, time.Hour, now)
	require.Equal(t, waits, line.Pieces[len(line.Pieces)-1].Class)
	for _, p := range line.Pieces {
		require.LessOrEqual(t, p.X+p.Width, timelineWidth)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	require.Nil(t, english.progressOf(nil, pace{}, begins))
	p := &state.Progress{Done: 400, Total: 1000, At: begins.Add(10 * time.Second)}
	first := newPaces().of(&state.Run{Attempt: 1, StartedAt: begins}, p)
	shown := english.progressOf(p, first, begins)
	require.Equal(t, "400 of 1,000", shown.Text)
	require.Equal(t, "40%", shown.Share)
	require.Equal(t, "40 a second", shown.Rate)
	require.Equal(t, "about 15s left", shown.Left)

	// A later attempt went on from somewhere: its rate counts from where it was first seen.
	paces := newPaces()
	again := &state.Run{Job: "a", ID: "b", Attempt: 2, StartedAt: begins}
	require.Empty(t, english.progressOf(p, paces.of(again, p), begins).Rate)
	later := &state.Progress{Done: 420, Total: 1000, At: begins.Add(20 * time.Second)}
	require.Equal(t, "2 a second", english.progressOf(later, paces.of(again, later), begins).Rate)
	require.Equal(t, pace{}, paces.of(&state.Run{Attempt: 2, StartedAt: begins.Add(time.Hour)}, p), "of an earlier attempt")

	// It does not go above its total, and has no share without one.
	require.Equal(t, "100%", english.progressOf(&state.Progress{Done: 7, Total: 5}, pace{}, begins).Share)
	unknown := english.progressOf(&state.Progress{Done: 1200}, pace{}, begins)
	require.Equal(t, "1,200 done", unknown.Text)
	require.Empty(t, unknown.Share+unknown.Total)

	for i := range keptPaces + 10 {
		paces.of(&state.Run{Job: "a", ID: string(rune(i)), Attempt: 2}, p)
	}
	require.LessOrEqual(t, len(paces.kept), keptPaces)
}
