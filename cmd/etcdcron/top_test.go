package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

func busy(n int) *inspect.Overview {
	v := &inspect.Overview{Jobs: 3 * n, Running: n, Failing: n, Paused: 1, Leader: &leader.Info{Instance: "a-1-x", ElectedAt: noon.Add(-time.Hour)}}
	for range n {
		v.RunningRuns = append(v.RunningRuns, inspect.RunningRun{Job: "slow", LiveRun: inspect.LiveRun{
			ID: "20240603T115900Z", Attempt: 1, Instance: "a-1-x", StartedAt: noon.Add(-time.Minute), Progress: &state.Progress{Done: 1, Total: 4, Message: "rows"},
		}})
		v.NextJobs = append(v.NextJobs, inspect.NextJob{Job: "hourly", At: noon.Add(time.Minute), Schedule: "@hourly", TimeZone: "UTC"})
		v.FailingJobs = append(v.FailingJobs, inspect.FailingJob{Job: "broken", Failures: 3, At: noon.Add(-time.Second), Error: "exit status 1\nmore"})
	}
	return v
}

func TestTopLines(t *testing.T) {
	t.Parallel()
	pace := 12.34
	require.Equal(t, `
12:00:00  /etcdcron/default/  leader a-1-x, elected 1h ago
3 jobs, 1 failing, 1 paused, 1 running, 0 waiting, 12.3 runs/s

RUNNING  RUN               FOR  TRY  INSTANCE  PROGRESS
slow     20240603T115900Z  1m   1    a-1-x     [==>     ] 25% rows

NEXT    DUE    SCHEDULE  ZONE
hourly  in 1m  @hourly   UTC

FAILING  IN A ROW  LAST    ERROR
broken   3         1s ago  exit status 1 …
`, "\n"+strings.Join(topLines(busy(1), &pace, "/etcdcron/default/", when{now: noon}, term.Screen{}), "\n")+"\n")

	nobody := topLines(&inspect.Overview{}, nil, "/etcdcron/default/", when{now: noon}, term.Screen{})
	require.Equal(t, []string{"12:00:00  /etcdcron/default/  nobody leads", "0 jobs, 0 running, 0 waiting"}, nobody)
}

// However much there is, the screen holds it: nothing scrolls, and no line is broken.
func TestTopLines_Fit(t *testing.T) {
	t.Parallel()
	for _, screen := range []term.Screen{{Width: 80, Height: 24, Color: true}, {Width: 80, Height: 9}, {Width: 40, Height: 60}, {Width: 80, Height: 2}} {
		lines := topLines(busy(100), nil, "/etcdcron/default/", when{now: noon}, screen)
		require.LessOrEqual(t, len(lines), screen.Height)
		for _, line := range lines {
			if screen.Width >= 80 {
				require.LessOrEqual(t, term.Width(term.Plain(line)), screen.Width, line)
			}
		}
		if screen.Height == 24 {
			require.Len(t, lines, 23)
			require.Contains(t, term.Plain(strings.Join(lines, "\n")), "RUNNING: 9 OF 100")
		}
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	require.Equal(t, [3]int{8, 4, 4}, share(16, [3]int{100, 100, 100}))
	require.Equal(t, [3]int{1, 11, 4}, share(16, [3]int{1, 100, 4}))
	require.Equal(t, [3]int{1, 2, 3}, share(16, [3]int{1, 2, 3}))
	require.Equal(t, [3]int{}, share(-4, [3]int{1, 2, 3}))
}

func TestEndings(t *testing.T) {
	t.Parallel()
	var e endings
	require.Zero(t, e.pace(noon))
	e.add(5, noon)
	e.add(-3, noon) // a job that was made anew
	require.InDelta(t, 5, e.pace(noon.Add(time.Second)), 0)
	e.add(15, noon.Add(time.Second))
	require.InDelta(t, 10, e.pace(noon.Add(2*time.Second)), 0)
	require.InDelta(t, 2, e.pace(noon.Add(10*time.Second)), 0)
	require.InDelta(t, 1.5, e.pace(noon.Add(11*time.Second)), 0)
	require.Zero(t, e.pace(noon.Add(time.Hour)))
}
