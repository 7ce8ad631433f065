package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
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

// What changes is on the board at once; what it could not read at the start comes with it.
func TestBoard(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	w := lead(t, etcd.Client(t), "")
	w.define(state.Spec{Name: "slow", Schedule: "@daily", TimeZone: "UTC"})
	o := &options{surroundings: surroundings{
		stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }, now: func() time.Time { return noon },
	}}
	newRootCommand(o)
	o.endpoints = etcd.Endpoints()

	const id = "20240603T115900Z"
	status := func(st state.JobStatus) {
		value, err := json.Marshal(st)
		require.NoError(t, err)
		w.put(w.keys.Status("slow"), string(value))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	steps := []struct {
		shows string // what the board must show before
		do    func()
	}{
		{"1 job, 0 running", func() {
			w.put(w.keys.Run("slow", id), `{"status":"running","attempt":1,"started_at":"2024-06-03T11:59:00Z","instance":"a-1-x"}`)
			w.put(w.keys.Progress("slow", id), `{"done":1,"total":4,"message":"rows"}`)
			status(state.JobStatus{Live: []string{id}, Running: 1})
		}},
		{"[==>     ] 25% rows", func() { w.put(w.keys.Control("slow"), `{"paused":true}`) }},
		{"1 paused", func() { status(state.JobStatus{FailedTotal: 1, ConsecutiveFailures: 1, LastError: "it broke"}) }},
		{"it broke", func() { w.put(w.keys.Status("new"), `{}`) }},
		{"2 jobs", func() {
			_, err := w.client.Delete(t.Context(), w.keys.Status("new"))
			require.NoError(t, err)
		}},
		{"1 job,", func() {
			_, err := w.client.Delete(t.Context(), w.term.Key)
			require.NoError(t, err)
		}},
		{"nobody leads", stop},
	}
	err := o.connected(ctx, func(ctx context.Context, c *cluster) error {
		return newBoard(c).watch(ctx, func(lines []string) error {
			if len(steps) > 0 && strings.Contains(strings.Join(lines, "\n"), steps[0].shows) {
				steps[0].do()
				steps = steps[1:]
			}
			return nil
		})
	})
	require.NoError(t, err)
	require.Empty(t, steps)
}
