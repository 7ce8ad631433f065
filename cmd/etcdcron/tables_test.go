package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func billing() state.Definition {
	return state.Definition{
		SpecRev: 1,
		Spec: state.Spec{
			Name: "daily_billing", Schedule: "0 9 * * *", TimeZone: "Asia/Shanghai", Source: "jobs.yaml",
			Description: "charges every account", Target: "/opt/billing/run --all\n  echo done",
			Overlap: "skip", CatchUp: "latest", Window: state.Duration(6 * time.Hour), Recovery: "resume", Recoveries: 3,
			Timeout: state.Duration(25 * time.Minute), LockTTL: state.Duration(30 * time.Second), Grace: state.Duration(7500 * time.Millisecond),
			Labels: map[string]string{"team": "billing", "env": "prod"},
		},
		View: state.View{Status: state.JobStatus{
			LastStatus: state.Failed, LastStartedAt: noon.Add(-11 * time.Hour), LastFinishedAt: noon.Add(-11 * time.Hour).Add(90 * time.Second),
			LastDurationMS: 90000, LastError: "exit status 1", NextRunAt: noon.Add(13 * time.Hour),
			SucceededTotal: 199, FailedTotal: 1, SkippedTotal: 3, SkippedByReason: map[string]int64{state.ReasonOverlap: 3},
			MissedTotal: 2, MissedByReason: map[string]int64{state.ReasonSuperseded: 2},
		}},
	}
}

func minutely(name string) state.Definition {
	return state.Definition{SpecRev: 1, Spec: state.Spec{Name: name, Schedule: "* * * * *", TimeZone: "UTC"}}
}

func jobsToShow() []state.Definition {
	fresh := minutely("新しい")
	stale := minutely("stale")
	stale.View.Status = state.JobStatus{Running: 1, LastStartedAt: noon.Add(-3 * time.Second), NextRunAt: noon.Add(-time.Hour)}
	paused := minutely("paused")
	paused.Control.Paused = true
	paused.View.Status = state.JobStatus{
		LastStatus: state.Succeeded, LastFinishedAt: noon.Add(-2 * time.Minute), SucceededTotal: 4, NextRunAt: noon.Add(time.Hour),
	}
	broken := state.Definition{SpecRev: 1, Spec: state.Spec{Name: "broken"}, Broken: errors.New("spec: not JSON")}
	retired := minutely("retired")
	retired.Spec.Retired = true
	return []state.Definition{billing(), fresh, stale, paused, broken, retired}
}

func written(t *testing.T, table *term.Table, screen term.Screen) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, table.Write(&b, screen))
	return "\n" + b.String()
}

func summaries(defs []state.Definition) []inspect.Job {
	all := make([]inspect.Job, len(defs))
	for i, def := range defs {
		all[i] = inspect.Summarize(def, noon)
	}
	return all
}

func TestJobTable(t *testing.T) {
	t.Parallel()
	defs := jobsToShow()
	require.Equal(t, `
NAME           SCHEDULE   ZONE           PAUSED  RUNNING  NEXT            LAST     RESULT     SUCCESS
daily_billing  0 9 * * *  Asia/Shanghai  -       -        in 13h          10h ago  failed     99%
新しい         * * * * *  UTC            -       -        in 1m           -        -          -
stale          * * * * *  UTC            -       1        in 1m           3s ago   -          -
paused         * * * * *  UTC            yes     -        -               2m ago   succeeded  100%
broken         -          -              -       -        never: invalid  -        invalid    -
retired        * * * * *  UTC            -       -        never: retired  -        -          -
`, written(t, jobTable(summaries(defs), defs, when{now: noon}, false), term.Screen{}))

	require.Equal(t, `
NAME           SCHEDULE   ZONE           PAUSED  RUNNING  NEXT    LAST     RESULT  SUCCESS  IN WORDS                 ALERTING  SKIPPED  MISSED  OVERLAP  CATCH-UP  RECOVERY  TIMEOUT  LOCK-TTL  SOURCE     TARGET
daily_billing  0 9 * * *  Asia/Shanghai  -       -        in 13h  10h ago  failed  99%      At 09:00, Asia/Shanghai  -         3        2       skip     latest    resume    25m      30s       jobs.yaml  /opt/billing/run --all …
`, written(t, jobTable(summaries(defs[:1]), defs[:1], when{now: noon}, true), term.Screen{}))
}

func TestJobTable_Alerting(t *testing.T) {
	t.Parallel()
	def := minutely("a")
	def.View.Status.Alerting = []state.Incident{
		{Kind: state.AlertMissed, ResolvedAt: noon, Untold: true}, {Kind: state.AlertFailing}, {Kind: state.AlertOverrun, Run: "1"}, {Kind: state.AlertOverrun, Run: "2"},
	}
	defs := []state.Definition{def}
	require.Contains(t, written(t, jobTable(summaries(defs), defs, when{now: noon}, true), term.Screen{Color: true}), "\x1b[31mfailing, overrun\x1b[0m")
}

func TestJobTable_Colour(t *testing.T) {
	t.Parallel()
	defs := jobsToShow()[3:4]
	got := written(t, jobTable(summaries(defs), defs, when{now: noon}, false), term.Screen{Color: true})
	require.Contains(t, got, "\x1b[1mNAME\x1b[0m")
	require.Contains(t, got, "\x1b[32msucceeded\x1b[0m")
}

func runsToShow() []state.Run {
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	return []state.Run{
		{ID: state.RunID(at(5 * time.Second)), Status: state.Running, ScheduledAt: at(5 * time.Second), StartedAt: at(4 * time.Second), Trigger: state.BySchedule, LatenessMS: 7, Attempt: 2, Instance: "a-1-x"},
		{ID: state.RunID(at(time.Minute)), Status: state.Succeeded, ScheduledAt: at(time.Minute), StartedAt: at(59 * time.Second), FinishedAt: at(57 * time.Second), DurationMS: 1240, Attempt: 1, Instance: "a-1-x", Output: "one\r\n  two\x1b[2J\n"},
		{ID: state.RunID(at(time.Hour)), Status: state.Failed, Reason: state.ReasonTimeout, Error: "took too long\nmore", ScheduledAt: at(time.Hour), StartedAt: at(time.Hour), FinishedAt: at(50 * time.Minute), DurationMS: 600000, Attempt: 1, Instance: "b-2-y"},
		{ID: state.RunID(at(26 * time.Hour)), Status: state.Missed, Reason: state.ReasonSuperseded, ScheduledAt: at(26 * time.Hour), Until: at(25 * time.Hour), Count: 60, Instance: "a-1-x"},
		{ID: "odd", Error: "stored value\x1b[31m cannot be decoded"},
	}
}

func TestRunTable(t *testing.T) {
	t.Parallel()
	require.Equal(t, `
RUN               STATUS     SCHEDULED  DURATION   NOTE
20240603T115955Z  running    5s ago     4s so far  attempt 2
20240603T115900Z  succeeded  1m ago     1.2s       -
20240603T110000Z  failed     1h ago     10m        timeout: took too long …
20240602T100000Z  missed     26h ago    -          60 times: a newer time ran instead
odd               -          -          -          stored value`+"\uFFFD"+`[31m cannot be decoded
`, written(t, runTable(runsToShow(), when{now: noon}, false), term.Screen{}))

	require.Equal(t, `
RUN               STATUS     TRIGGER   SCHEDULED             STARTED               LATENESS  DURATION   ATTEMPT  INSTANCE  ASKED-BY  NOTE
20240603T115955Z  running    schedule  2024-06-03T11:59:55Z  2024-06-03T11:59:56Z  7ms       4s so far  2        a-1-x     -         -
20240603T115900Z  succeeded  -         2024-06-03T11:59:00Z  2024-06-03T11:59:01Z  <1ms      1.2s       1        a-1-x     -         -
`, written(t, runTable(runsToShow()[:2], when{now: noon}, true), term.Screen{}))

	require.Equal(t, `
RUN                     STATUS    TRIGGER  SCHEDULED             STARTED  LATENESS  DURATION  ATTEMPT  INSTANCE  ASKED-BY  NOTE
20240603T120000Z-rabcd  canceled  retry    2024-06-03T09:00:00Z  -        -         -         -        a-1-x     jo@a      retry of 20240603T090000Z; with day=3, month=6; canceled by jo@a
`, written(t, runTable([]state.Run{{
		ID: "20240603T120000Z-rabcd", Status: state.Canceled, Reason: state.ReasonRequested, Error: "canceled by jo@a", Trigger: state.ByRetry,
		ScheduledAt: noon.Add(-3 * time.Hour), Instance: "a-1-x", RequestedBy: "jo@a", RetryOf: "20240603T090000Z", Args: map[string]string{"month": "6", "day": "3"},
	}}, when{now: noon}, true), term.Screen{}))
}

// What the tables of a normal day need fits a terminal of 80 columns.
func TestTablesFitTheScreen(t *testing.T) {
	t.Parallel()
	at := noon.Add(-(10*time.Hour + 5*time.Minute))
	runs := []state.Run{
		{ID: state.RunID(at), Status: state.Succeeded, ScheduledAt: at, StartedAt: at, FinishedAt: at.Add(time.Second), DurationMS: 999, Attempt: 1, Instance: strings.Repeat("x", 40)},
		{ID: state.RunID(at), Status: state.Failed, ScheduledAt: at, StartedAt: at, FinishedAt: at, Attempt: 2, Error: "exit status 1"},
		{ID: state.RunID(at), Status: state.Running, ScheduledAt: at, StartedAt: at, Attempt: 1},
	}
	for _, reason := range []string{state.ReasonOverlap, state.ReasonSuperseded, state.ReasonCatchUp, state.ReasonPaused} {
		runs = append(runs, state.Run{ID: state.RunID(at), Status: state.Skipped, Reason: reason, ScheduledAt: at})
	}
	file, err := config.Load("../../examples/quickstart/jobs.yaml")
	require.NoError(t, err)
	var defs []state.Definition
	for _, spec := range file.Jobs {
		j := spec.Job.WithDefaults()
		def := state.Definition{SpecRev: 1, Spec: state.Spec{Name: j.Name, Schedule: j.Schedule, TimeZone: j.TimeZone}}
		def.View.Status = state.JobStatus{
			Running: 1, LastStatus: state.Succeeded, LastStartedAt: at, LastFinishedAt: at, SucceededTotal: 1, NextRunAt: noon.Add(90 * time.Second),
		}
		defs = append(defs, def)
	}
	for _, table := range []*term.Table{runTable(runs, when{now: noon}, false), jobTable(summaries(defs), defs, when{now: noon}, false)} {
		for line := range strings.Lines(written(t, table, term.Screen{Width: 80})) {
			require.LessOrEqual(t, term.Width(strings.TrimSuffix(line, "\n")), 80, line)
		}
	}
}

func TestDurationCell(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{0: "<1ms", 7: "7ms", 1240: "1.2s"} {
		require.Equal(t, want, durationCell(&state.Run{Status: state.Failed, StartedAt: noon, FinishedAt: noon, DurationMS: ms}, noon))
	}
	require.Empty(t, durationCell(&state.Run{Status: state.Skipped}, noon))
}

func TestNoteCell(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		state.ReasonOverlap: "still running", state.ReasonSuperseded: "a newer time ran instead",
		state.ReasonWindow: "older than the catch-up window", state.ReasonPaused: "paused",
		state.ReasonCatchUp: "passed while nobody led", state.ReasonInstanceLost: "instance lost",
		state.ReasonTimeout: "timeout", state.ReasonDrain: "instance stopped", "new": "new",
		state.ReasonCoalesced: "one that waits stands for it", state.ReasonReplaced: "a newer run took its place",
		state.ReasonLimit: "more than are caught up", state.ReasonRequested: "on request",
	} {
		require.Equal(t, want, noteCell(&state.Run{Reason: reason}, false))
	}
	require.Equal(t, "attempt 3: panic: boom …", noteCell(&state.Run{Reason: state.ReasonPanic, Error: "boom\n\nstack", Attempt: 3}, false))
	require.Equal(t, "panic: boom …", noteCell(&state.Run{Reason: state.ReasonPanic, Error: "boom\n\nstack", Attempt: 3}, true))
}

func TestRate(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{0: "0%", 0.0001: "1%", 0.5: "50%", 2. / 3: "67%", 0.9999: "99%", 1: "100%"} {
		require.Equal(t, want, rate(&share))
	}
	require.Empty(t, rate(nil))
}

func described(t *testing.T, d inspect.Description) string {
	t.Helper()
	var b bytes.Buffer
	o := &options{surroundings: surroundings{stdout: &b, getenv: func(string) string { return "" }}}
	require.NoError(t, o.describeText(&d, when{now: noon}))
	return "\n" + b.String()
}

func TestDescribeText(t *testing.T) {
	t.Parallel()
	def := billing()
	require.Equal(t, `
Job:          daily_billing
Description:  charges every account
Schedule:     0 9 * * *  Asia/Shanghai
              At 09:00, Asia/Shanghai
Target:       /opt/billing/run --all
                echo done
Source:       jobs.yaml
Labels:       env=prod, team=billing
Overlap:      skip
Catch-up:     latest, within 6h
Recovery:     resume, at most 3 times
Limits:       timeout 25m, lock TTL 30s, grace 7.5s
State:        idle
Last run:     failed 10h ago, took 1m30s
Last error:   exit status 1
Totals:       199 succeeded, 1 failed, 3 skipped (still running: 3), 2 missed (a newer time ran instead: 2), success 99%

LOCAL                           UTC                   WHEN
Tue 2024-06-04 09:00:00 +08:00  2024-06-04T01:00:00Z  in 13h

RUN               STATUS     SCHEDULED  DURATION   NOTE
20240603T115955Z  running    5s ago     4s so far  attempt 2
20240603T115900Z  succeeded  1m ago     1.2s       -

OUTPUT of 20240603T115900Z
  one
    two`+"\uFFFD"+`[2J
`, described(t, inspect.Description{
		Definition: def.Spec, Status: def.View.Status, Next: []time.Time{noon.Add(13 * time.Hour)}, Runs: runsToShow()[:2],
	}))

	fresh := minutely("fresh")
	require.Equal(t, `
Job:          fresh
Schedule:     * * * * *  UTC
              Every minute
Invalid:      no schedule
State:        running; paused by jo 1h ago: too loud
Totals:       0 succeeded, 0 failed
`, described(t, inspect.Description{
		Definition: fresh.Spec, Status: state.JobStatus{Running: 1, LastStartedAt: noon.Add(-3 * time.Second)},
		Control: state.Control{Paused: true, By: "jo", At: noon.Add(-time.Hour), Reason: "too loud"}, Invalid: new("no schedule"),
	}))
}

// How far what runs is, and how a job retries.
func TestDescribeText_Live(t *testing.T) {
	t.Parallel()
	def := billing()
	def.Spec.Retry = &state.RetrySpec{MaxAttempts: 3, Initial: state.Duration(10 * time.Second), Max: state.Duration(5 * time.Minute), Multiplier: 2}
	def.Spec.Checkpoint = state.PerJob
	text := described(t, inspect.Description{Definition: def.Spec, Status: state.JobStatus{Running: 3}, Live: []inspect.LiveRun{
		{ID: "20240603T115955Z", Attempt: 1, Instance: "a", StartedAt: noon.Add(-5 * time.Second), Progress: &state.Progress{Done: 40, Total: 100, Message: "charging\nnow"}},
		{ID: "20240603T115956Z", Attempt: 2, Instance: "b", StartedAt: noon.Add(-4 * time.Second), Progress: &state.Progress{Done: 7}},
		{ID: "20240603T115957Z", Attempt: 1, Instance: "c", StartedAt: noon.Add(-3 * time.Second), RetryAt: new(noon.Add(12 * time.Second))},
	}})
	require.Contains(t, text, `
Retry:        at most 3 attempts, after a random pause of up to 10s, times 2 each, at most 5m
Checkpoint:   of the job, carried on until a run succeeds
`)
	require.Contains(t, text, `
State:        3 running
Running:      20240603T115955Z: for 5s on a; 40 of 100 (40%), charging …
              20240603T115956Z: for 4s, attempt 2 on b; 7
              20240603T115957Z: attempt 1 failed, the next one in 12s on c
`)
}

// When a job alerts, what it alerts of, and how its runs ended.
func TestDescribeText_Alert(t *testing.T) {
	t.Parallel()
	def := billing()
	def.Spec.Alert = &state.AlertSpec{AfterFailures: 3, Missed: true, Overrun: state.Duration(20 * time.Minute), Recovered: true, Notify: "https://hooks.example/…"}
	def.View.Status.Alerting = []state.Incident{
		{Kind: state.AlertFailing, Run: "20240603T010000Z", Since: noon.Add(-10 * time.Hour), Count: 5},
		{Kind: state.AlertMissed, Run: "20240603T010000Z", Since: noon.Add(-10 * time.Hour), Count: 2, Untold: true},
		{Kind: state.AlertFailing, Run: "20240602T010000Z", Since: noon.Add(-34 * time.Hour), Count: 1, ResolvedAt: noon.Add(-5 * time.Minute)},
		{Kind: state.AlertOverrun, Run: "20240603T115955Z", Since: noon.Add(-30 * time.Minute)},
	}
	half, mean := 0.5, 1234.0
	text := described(t, inspect.Description{Definition: def.Spec, Status: def.View.Status, Outcomes: []state.Outcomes{
		{Window: state.Duration(24 * time.Hour)},
		{Window: state.Duration(7 * 24 * time.Hour), Succeeded: 6000, Failed: 6000, SuccessRate: &half, MeanDurationMS: &mean, Cut: true, Since: noon.Add(-75 * time.Hour)},
	}})
	require.Contains(t, text, `
Alert:        after 3 failures in a row, when a time is missed, when a run takes longer than 20m; also when it has recovered; told to https://hooks.example/…
`)
	require.Contains(t, text, `
Alerting:     failing: 5 failures in a row, since run 20240603T010000Z, which ended 10h ago
              missed: 2 scheduled times, from 2024-06-03T02:00:00Z on; not told yet
              failing: 1 failure, since run 20240602T010000Z, which ended 34h ago; over 5m ago; not told yet
              overrun: run 20240603T115955Z, which began 30m ago
`)
	require.Contains(t, text, `
Success:      24h no runs; 7d 50% of 12000, mean 1.2s (counted from 3d3h ago on)
Totals: `)
	require.Equal(t, "after 1 failure; in log and metrics alone", alertText(&state.AlertSpec{AfterFailures: 1, Recovered: true}))
	require.Equal(t, "when a time is missed; told to code", alertText(&state.AlertSpec{Missed: true, Notify: "code"}))
}

// What bounds a schedule, and what was asked of the job.
func TestDescribeText_Bounds(t *testing.T) {
	t.Parallel()
	def := billing()
	def.Spec.Start, def.Spec.End = noon.Add(-30*24*time.Hour), noon.Add(30*24*time.Hour)
	def.Spec.MaxRuns, def.View.Status.ScheduledRunsTotal = 1000, 200
	def.Spec.Jitter, def.Spec.Delay = state.Duration(10*time.Minute), state.Duration(192*time.Second)
	def.Spec.CatchUp, def.Spec.CatchUpMax = "all", 100
	def.View.Status = state.JobStatus{ScheduledRunsTotal: 200}
	text := described(t, inspect.Description{Definition: def.Spec, Status: def.View.Status, Next: []time.Time{noon.Add(time.Hour)}, Requests: []state.Request{
		{Kind: state.AskTrigger, ID: "20240603T115959Z-mabcd", By: "jo@a", At: noon.Add(-time.Second), Args: map[string]string{"day": "3"}, Reason: "again\nand again"},
		{Kind: state.AskRetry, ID: "20240603T115959Z-rabcd", Run: "20240603T010000Z", By: "jo@a", At: noon},
		{Kind: state.AskBackfill, ID: "20240603T115959Z-babcd", By: "jo@a", At: noon.Add(-time.Minute), From: noon.Add(-24 * time.Hour), To: noon, Next: noon.Add(-11 * time.Hour), Done: 3, Total: 10},
		{Kind: state.AskCancel, Run: "20240603T010000Z", At: noon.Add(-time.Minute)},
	}})
	require.Contains(t, text, `
Start:        2024-05-04T12:00:00Z, 30d ago
End:          2024-07-03T12:00:00Z, in 30d
Max runs:     200 of 1000 done
Jitter:       up to 10m, this job 3m12s
Overlap:      skip
Catch-up:     all, within 6h, at most 100 of them
`)
	require.Contains(t, text, `
State:        idle
Requests:     20240603T115959Z-mabcd: trigger with day=3, by jo@a 1s ago: again …
              20240603T115959Z-rabcd: retry of 20240603T010000Z, by jo@a just now
              20240603T115959Z-babcd: backfill from 2024-06-02T12:00:00Z to 2024-06-03T12:00:00Z, 3 of 10 begun, next 2024-06-03T01:00:00Z, by jo@a 1m ago
              20240603T010000Z: to be canceled, asked 1m ago
Totals:       0 succeeded, 0 failed
`)
	require.Contains(t, described(t, inspect.Description{Definition: def.Spec}), "State:        over: it is not due any more\n")
}

// A job that has had its runs, or whose last scheduled time has passed, is over.
func TestJobTable_Over(t *testing.T) {
	t.Parallel()
	def := minutely("a")
	def.Spec.End = noon
	defs := []state.Definition{def}
	require.Contains(t, written(t, jobTable(summaries(defs), defs, when{now: noon}, false), term.Screen{}), "never: over")
}

func TestWriteOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line\n", 11)
	for name, tc := range map[string]struct {
		runs []state.Run
		want string
	}{
		"none":          {nil, ""},
		"never started": {[]state.Run{{ID: "a", Status: state.Skipped, Output: "x"}}, ""},
		"silent":        {[]state.Run{{ID: "b", Status: state.Failed, Attempt: 1}, {ID: "a", Status: state.Failed, Attempt: 1, Output: "x"}}, ""},
		"goes on": {
			[]state.Run{{ID: "c", Status: state.Running, Attempt: 1}, {ID: "b", Status: state.Missed}, {ID: "a", Status: state.Failed, Attempt: 1, Output: "x"}},
			"\nOUTPUT of a\n  x\n",
		},
		"long": {[]state.Run{{ID: "a", Status: state.Failed, Attempt: 1, Output: long}}, "\nOUTPUT of a, its last 10 lines\n" + strings.Repeat("  line\n", 10)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			writeOutput(&b, term.Screen{}, tc.runs)
			require.Equal(t, tc.want, b.String())
		})
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	table := func() *term.Table { return term.NewTable("X") }
	for form, want := range map[string][2]string{
		asJSON:  {"[]\n", "[\n  \"<a>\",\n  \"b\"\n]\n"},
		asJSONL: {"", "\"<a>\"\n\"b\"\n"},
		asTable: {"X\n", "X\n"},
	} {
		for i, items := range [][]string{nil, {"<a>", "b"}} {
			var b strings.Builder
			o := &options{surroundings: surroundings{stdout: &b}, output: choice{value: form}}
			require.NoError(t, list(o, items, table))
			require.Equal(t, want[i], b.String())
		}
	}
}
