package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

func billing() state.Definition {
	return state.Definition{
		SpecRev: 1,
		Spec: state.Spec{
			Name: "daily_billing", Schedule: "0 9 * * *", TimeZone: "Asia/Shanghai", Source: "jobs.yaml",
			Description: "charges every account", Target: "/opt/billing/run --all",
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

func summaries(defs []state.Definition) []jobSummary {
	all := make([]jobSummary, len(defs))
	for i, def := range defs {
		all[i] = summarize(def, noon)
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
`, written(t, jobTable(summaries(defs), defs, noon, false), term.Screen{}))

	require.Equal(t, `
NAME           SCHEDULE   ZONE           PAUSED  RUNNING  NEXT    LAST     RESULT  SUCCESS  SKIPPED  MISSED  OVERLAP  CATCH-UP  RECOVERY  TIMEOUT  LOCK-TTL  SOURCE     TARGET
daily_billing  0 9 * * *  Asia/Shanghai  -       -        in 13h  10h ago  failed  99%      3        2       skip     latest    resume    25m      30s       jobs.yaml  /opt/billing/run --all
`, written(t, jobTable(summaries(defs[:1]), defs[:1], noon, true), term.Screen{}))
}

func TestJobTable_Colour(t *testing.T) {
	t.Parallel()
	defs := jobsToShow()[3:4]
	got := written(t, jobTable(summaries(defs), defs, noon, false), term.Screen{Color: true})
	require.Contains(t, got, "\x1b[1mNAME\x1b[0m")
	require.Contains(t, got, "\x1b[32msucceeded\x1b[0m")
}

// The JSON is a contract: every field is there, null when not known.
func TestJobSummary_JSON(t *testing.T) {
	t.Parallel()
	for i, want := range []string{
		`{"name":"daily_billing","schedule":"0 9 * * *","time_zone":"Asia/Shanghai","paused":false,"running":0,"pending":0,
		  "next_run_at":"2024-06-04T01:00:00Z","last_status":"failed","last_started_at":"2024-06-03T01:00:00Z",
		  "last_finished_at":"2024-06-03T01:01:30Z","last_duration_ms":90000,"last_error":"exit status 1",
		  "skipped_total":3,"missed_total":2,"succeeded_total":199,"failed_total":1,"success_rate":0.995,
		  "description":"charges every account","target":"/opt/billing/run --all","source":"jobs.yaml","retired":false,"invalid":null}`,
		`{"name":"新しい","schedule":"* * * * *","time_zone":"UTC","paused":false,"running":0,"pending":0,
		  "next_run_at":"2024-06-03T12:01:00Z","last_status":null,"last_started_at":null,
		  "last_finished_at":null,"last_duration_ms":null,"last_error":null,
		  "skipped_total":0,"missed_total":0,"succeeded_total":0,"failed_total":0,"success_rate":null,
		  "description":"","target":"","source":"","retired":false,"invalid":null}`,
	} {
		b, err := json.Marshal(summarize(jobsToShow()[i], noon))
		require.NoError(t, err)
		require.JSONEq(t, want, string(b))
	}
	paused, broken := summarize(jobsToShow()[3], noon), summarize(jobsToShow()[4], noon)
	require.Nil(t, paused.NextRunAt)
	require.Nil(t, broken.NextRunAt)
	require.Equal(t, "spec: not JSON", *broken.Invalid)
	gone := summarize(state.Definition{Spec: state.Spec{Name: "gone"}}, noon)
	require.Equal(t, "its definition is not there", *gone.Invalid)
	odd := minutely("odd")
	odd.Spec.Schedule = "often"
	require.NotNil(t, summarize(odd, noon).Invalid)
}

func runsToShow() []state.Run {
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	return []state.Run{
		{ID: state.RunID(at(5 * time.Second)), Status: state.Running, ScheduledAt: at(5 * time.Second), StartedAt: at(4 * time.Second), Attempt: 2, Instance: "a-1-x"},
		{ID: state.RunID(at(time.Minute)), Status: state.Succeeded, ScheduledAt: at(time.Minute), StartedAt: at(59 * time.Second), FinishedAt: at(57 * time.Second), DurationMS: 1240, Attempt: 1, Instance: "a-1-x"},
		{ID: state.RunID(at(time.Hour)), Status: state.Failed, Reason: state.ReasonTimeout, Error: "took too long\nmore", ScheduledAt: at(time.Hour), StartedAt: at(time.Hour), FinishedAt: at(50 * time.Minute), DurationMS: 600000, Attempt: 1, Instance: "b-2-y"},
		{ID: state.RunID(at(26 * time.Hour)), Status: state.Missed, Reason: state.ReasonSuperseded, ScheduledAt: at(26 * time.Hour), Until: at(25 * time.Hour), Count: 60, Instance: "a-1-x"},
		{ID: "odd", Error: "stored value\x1b[31m cannot be decoded"},
	}
}

func TestRunTable(t *testing.T) {
	t.Parallel()
	require.Equal(t, `
RUN               STATUS     SCHEDULED           STARTED  DURATION   ATTEMPT  INSTANCE  REASON/ERROR
20240603T115955Z  running    5s ago              4s ago   4s so far  2        a-1-x     -
20240603T115900Z  succeeded  1m ago              59s ago  1.2s       1        a-1-x     -
20240603T110000Z  failed     1h ago              1h ago   10m        1        b-2-y     timeout: took too long
20240602T100000Z  missed     26h ago (60 times)  -        -          -        a-1-x     superseded
odd               -          -                   -        -          -        -         stored value`+"\uFFFD"+`[31m cannot be decoded
`, written(t, runTable(runsToShow(), noon, false), term.Screen{}))

	require.Equal(t, `
RUN               STATUS     SCHEDULED             STARTED               DURATION  ATTEMPT  INSTANCE  REASON/ERROR
20240603T115900Z  succeeded  2024-06-03T11:59:00Z  2024-06-03T11:59:01Z  1.2s      1        a-1-x     -
`, written(t, runTable(runsToShow()[1:2], noon, true), term.Screen{}))
}

func described(t *testing.T, d description) string {
	t.Helper()
	var b bytes.Buffer
	o := &options{surroundings: surroundings{stdout: &b, getenv: func(string) string { return "" }}}
	require.NoError(t, o.describeText(&d, noon))
	return "\n" + b.String()
}

func TestDescribeText(t *testing.T) {
	t.Parallel()
	def := billing()
	require.Equal(t, `
Job:          daily_billing
Description:  charges every account
Schedule:     0 9 * * *  Asia/Shanghai
Target:       /opt/billing/run --all
Source:       jobs.yaml
Labels:       env=prod, team=billing
Overlap:      skip
Catch-up:     latest, within 6h
Recovery:     resume, at most 3 times
Limits:       timeout 25m, lock TTL 30s, grace 7.5s
State:        idle
Last run:     failed 10h ago, took 1m30s
Last error:   exit status 1
Totals:       199 succeeded, 1 failed, 3 skipped (overlap 3), 2 missed (superseded 2), success 99%

LOCAL                           UTC                   WHEN
Tue 2024-06-04 09:00:00 +08:00  2024-06-04T01:00:00Z  in 13h

RUN               STATUS     SCHEDULED  STARTED  DURATION  ATTEMPT  INSTANCE  REASON/ERROR
20240603T115900Z  succeeded  1m ago     59s ago  1.2s      1        a-1-x     -
`, described(t, description{
		Definition: def.Spec, Status: def.View.Status, Next: []time.Time{noon.Add(13 * time.Hour)}, Runs: runsToShow()[1:2],
	}))

	fresh := minutely("fresh")
	require.Equal(t, `
Job:          fresh
Schedule:     * * * * *  UTC
Invalid:      no schedule
State:        running since 3s ago; paused by jo 1h ago: too loud
Totals:       0 succeeded, 0 failed
`, described(t, description{
		Definition: fresh.Spec, Status: state.JobStatus{Running: 1, LastStartedAt: noon.Add(-3 * time.Second)},
		Control: state.Control{Paused: true, By: "jo", At: noon.Add(-time.Hour), Reason: "too loud"}, Invalid: unlessZero("no schedule"),
	}))
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
