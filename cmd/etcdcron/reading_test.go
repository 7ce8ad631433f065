package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// writer writes records as a leader does.
type writer struct {
	t      *testing.T
	client *clientv3.Client
	keys   state.Keys
	store  *state.Store
	term   state.Term
	lease  clientv3.LeaseID
}

// lead makes a leader in namespace, elected an hour ago.
func lead(t *testing.T, client *clientv3.Client, namespace string) *writer {
	t.Helper()
	keys, err := state.NewKeys("", namespace)
	require.NoError(t, err)
	w := &writer{t: t, client: client, keys: keys, store: state.NewStore(client, keys, state.StoreConfig{})}
	lease, err := client.Grant(t.Context(), 60)
	require.NoError(t, err)
	w.lease = lease.ID
	w.term.Key = keys.Candidates() + "1"
	w.term.Revision = w.put(w.term.Key,
		`{"instance":"a-1-x","host":"a","pid":1,"address":"127.0.0.1:2390","elected_at":"`+noon.Add(-time.Hour).Format(time.RFC3339)+`"}`)
	return w
}

func (w *writer) put(key, value string) int64 {
	w.t.Helper()
	resp, err := w.client.Put(w.t.Context(), key, value)
	require.NoError(w.t, err)
	return resp.Header.Revision
}

func (w *writer) define(spec state.Spec) state.Definition {
	w.t.Helper()
	spec.UID, spec.CreatedAt, spec.UpdatedAt = "u-"+spec.Name, noon, noon
	def, err := w.store.Define(w.t.Context(), w.term, state.Definition{}, spec,
		state.JobStatus{UID: spec.UID, Cursor: noon.Add(-time.Hour)})
	require.NoError(w.t, err)
	return def
}

// run records a run that began ago and has ended as end says.
func (w *writer) run(def state.Definition, view state.View, ago time.Duration, end state.Run) state.View {
	w.t.Helper()
	at := noon.Add(-ago)
	run := state.Run{
		Job: def.Spec.Name, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at, StartedAt: at,
		Status: state.Running, Attempt: 1, Instance: "a-1-x",
	}
	owned, view, err := w.store.Claim(w.t.Context(), state.Claim{
		Term: w.term, Run: run, UID: def.Spec.UID, View: view, SpecRev: def.SpecRev, Lease: w.lease, Next: noon.Add(5 * time.Second),
	})
	require.NoError(w.t, err)
	run.Status, run.Reason, run.Error = end.Status, end.Reason, end.Error
	run.Output = end.Output
	run.FinishedAt, run.DurationMS = at.Add(time.Second), 1000
	view, err = w.store.Finish(w.t.Context(), owned, run, view)
	require.NoError(w.t, err)
	return view
}

func (w *writer) skip(def state.Definition, view state.View, ago time.Duration) state.View {
	w.t.Helper()
	at := noon.Add(-ago)
	view, err := w.store.Record(w.t.Context(), state.Verdict{
		Term: w.term, UID: def.Spec.UID, View: view, SpecRev: def.SpecRev, Next: noon.Add(5 * time.Second),
		Run: state.Run{
			Job: def.Spec.Name, ID: state.RunID(at), Trigger: state.BySchedule, ScheduledAt: at,
			Status: state.Skipped, Reason: state.ReasonOverlap, Instance: "a-1-x",
		},
	})
	require.NoError(w.t, err)
	return view
}

// The reading commands, on records as the scheduler writes them.
func TestReading(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	w := lead(t, etcd.Client(t), "")

	spec := state.Spec{
		Name: "hello", Schedule: "*/5 * * * * *", TimeZone: "UTC", Source: "jobs.yaml", Target: "date",
		Overlap: "skip", CatchUp: "latest", Window: state.Duration(24 * time.Hour), Recovery: "resume", Recoveries: 3,
		Timeout: state.Duration(time.Minute), LockTTL: state.Duration(15 * time.Second), Grace: state.Duration(3750 * time.Millisecond),
	}
	hello := w.define(spec)
	view := w.run(hello, hello.View, 15*time.Second, state.Run{Status: state.Succeeded})
	view = w.skip(hello, view, 10*time.Second)
	w.run(hello, view, 5*time.Second, state.Run{Status: state.Failed, Error: "exit status 1", Output: "bad luck this time\n"})

	spec.Name, spec.Schedule = "paused", "@daily"
	w.define(spec)
	w.put(w.keys.Control("paused"), `{"paused":true,"by":"jo","reason":"too loud","at":"`+noon.Add(-time.Minute).Format(time.RFC3339)+`"}`)
	spec.Name, spec.Retired = "gone", true
	w.define(spec)
	w.put(w.keys.Spec("broken"), "{")
	w.put(w.keys.Status("broken"), "{}")

	etcdcron := func(args ...string) called {
		return call(t, map[string]string{"ETCDCRON_ENDPOINTS": strings.Join(etcd.Endpoints(), ",")}, args...)
	}
	for name, tc := range map[string]struct {
		args []string
		want called
	}{
		"jobs": {[]string{"jobs"}, called{stdout: `
NAME    SCHEDULE       ZONE  PAUSED  RUNNING  NEXT            LAST    RESULT   SUCCESS
broken  -              -     -       -        never: invalid  -       invalid  -
hello   */5 * * * * *  UTC   -       -        in 5s           4s ago  failed   50%
paused  @daily         UTC   yes     -        -               -       -        -
`, stderr: "1 retired job not shown; --all shows them\n"}},
		"all jobs": {[]string{"jobs", "--all"}, called{stdout: `
NAME    SCHEDULE       ZONE  PAUSED  RUNNING  NEXT            LAST    RESULT   SUCCESS
broken  -              -     -       -        never: invalid  -       invalid  -
gone    @daily         UTC   -       -        never: retired  -       -        -
hello   */5 * * * * *  UTC   -       -        in 5s           4s ago  failed   50%
paused  @daily         UTC   yes     -        -               -       -        -
`}},
		"history": {[]string{"history", "hello"}, called{stdout: `
RUN               STATUS     SCHEDULED  DURATION  NOTE
20240603T115955Z  failed     5s ago     1s        exit status 1
20240603T115950Z  skipped    10s ago    -         still running
20240603T115945Z  succeeded  15s ago    1s        -
`}},
		"a part of the history": {[]string{"history", "hello", "-n", "1", "--before", "20240603T115955Z"}, called{stdout: `
RUN               STATUS   SCHEDULED  DURATION  NOTE
20240603T115950Z  skipped  10s ago    -         still running
`, stderr: "there are older ones: etcdcron history hello --before 20240603T115950Z\n"}},
		"no history": {[]string{"history", "paused"}, called{stdout: `
RUN  STATUS  SCHEDULED  DURATION  NOTE
`, stderr: "job paused has not run yet\n"}},
		"history of nothing": {[]string{"history", "helo"}, called{
			code: exitNotFound, stderr: "error: there is no job \"helo\" under /etcdcron/default/\n" +
				"try: did you mean hello? etcdcron jobs lists them\n",
		}},
		"describe": {[]string{"describe", "hello"}, called{stdout: `
Job:          hello
Schedule:     */5 * * * * *  UTC
              Every 5 seconds
Target:       date
Source:       jobs.yaml
Overlap:      skip
Catch-up:     latest, within 24h
Recovery:     resume, at most 3 times
Limits:       timeout 1m, lock TTL 15s, grace 3.8s
State:        idle
Last run:     failed 4s ago, took 1s
Last error:   exit status 1
Success:      24h 50% of 2, mean 1s; 7d 50% of 2, mean 1s
Totals:       1 succeeded, 1 failed, 1 skipped (still running: 1), success 50%

LOCAL                           UTC                   WHEN
Mon 2024-06-03 12:00:05 +00:00  2024-06-03T12:00:05Z  in 5s
Mon 2024-06-03 12:00:10 +00:00  2024-06-03T12:00:10Z  in 10s
Mon 2024-06-03 12:00:15 +00:00  2024-06-03T12:00:15Z  in 15s
Mon 2024-06-03 12:00:20 +00:00  2024-06-03T12:00:20Z  in 20s
Mon 2024-06-03 12:00:25 +00:00  2024-06-03T12:00:25Z  in 25s

RUN               STATUS     SCHEDULED  DURATION  NOTE
20240603T115955Z  failed     5s ago     1s        exit status 1
20240603T115950Z  skipped    10s ago    -         still running
20240603T115945Z  succeeded  15s ago    1s        -

OUTPUT of 20240603T115955Z
  bad luck this time
`}},
		"describe a paused job": {[]string{"describe", "paused"}, called{stdout: `
Job:          paused
Schedule:     @daily  UTC
              At 00:00, UTC
Target:       date
Source:       jobs.yaml
Overlap:      skip
Catch-up:     latest, within 24h
Recovery:     resume, at most 3 times
Limits:       timeout 1m, lock TTL 15s, grace 3.8s
State:        paused by jo 1m ago: too loud
Totals:       0 succeeded, 0 failed
`}},
		"describe a broken job": {[]string{"describe", "broken"}, called{stdout: `
Job:          broken
Invalid:      spec of job broken: stored value cannot be decoded: unexpected end of JSON input
State:        idle
Totals:       0 succeeded, 0 failed
`}},
		"describe nothing": {[]string{"describe", "x"}, called{
			code: exitNotFound, stderr: "error: there is no job \"x\" under /etcdcron/default/\ntry: etcdcron jobs lists them\n",
		}},
		"next": {[]string{"next", "hello", "-n", "1"}, called{stdout: `
LOCAL                           UTC                   WHEN
Mon 2024-06-03 12:00:05 +00:00  2024-06-03T12:00:05Z  in 5s
`}},
		"next of a paused job": {[]string{"next", "paused", "-n", "1"}, called{stdout: `
LOCAL                           UTC                   WHEN
Tue 2024-06-04 00:00:00 +00:00  2024-06-04T00:00:00Z  in 12h
`, stderr: "job paused is paused: it does not run until it is resumed\n"}},
		"next of a broken job": {[]string{"next", "broken"}, called{
			code: exitFailed, stderr: "error: job broken is invalid: spec of job broken: stored value cannot be decoded: unexpected end of JSON input\n",
		}},
		"next of nothing": {[]string{"next", "tick"}, called{
			code: exitNotFound, stderr: "error: there is no job \"tick\" under /etcdcron/default/\ntry: etcdcron jobs lists them\n",
		}},
		"leader": {[]string{"leader"}, called{stdout: `
INSTANCE  HOST  PID  TERM  ELECTED  ADDRESS
a-1-x     a     1    ` + fmt.Sprintf("%-4d", w.term.Revision) + `  1h ago   127.0.0.1:2390
`}},
		"no jobs": {[]string{"jobs", "--namespace", "empty"}, called{
			stdout: "\nNAME  SCHEDULE  ZONE  PAUSED  RUNNING  NEXT  LAST  RESULT  SUCCESS\n",
			stderr: "there are no jobs under /etcdcron/empty/; start some with: etcdcron serve -c FILE\n",
		}},
		"no jobs as JSON": {[]string{"jobs", "--namespace", "empty", "-o", "json"}, called{stdout: "\n[]\n"}},
		"no leader": {[]string{"leader", "--namespace", "empty"}, called{
			code: exitNotFound, stderr: "error: nobody leads under /etcdcron/empty/\n" +
				"try: etcdcron serve -c FILE starts an instance; when one has just stopped, another leads within seconds\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := etcdcron(tc.args...)
			if got.stdout != "" {
				got.stdout = "\n" + got.stdout
			}
			require.Equal(t, tc.want, got)
		})
	}

	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		var jobs []map[string]any
		read(t, etcdcron("jobs", "-o", "json"), &jobs)
		require.Len(t, jobs, 3)
		require.Equal(t, "hello", jobs[1]["name"])
		require.Equal(t, "2024-06-03T12:00:05Z", jobs[1]["next_run_at"])
		require.InDelta(t, 0.5, jobs[1]["success_rate"], 0)
		require.Nil(t, jobs[2]["next_run_at"])
		require.NotNil(t, jobs[0]["invalid"])

		var runs []state.Run
		read(t, etcdcron("history", "hello", "-o", "json"), &runs)
		require.Len(t, runs, 3)
		require.Equal(t, state.Failed, runs[0].Status)

		var description map[string]any
		read(t, etcdcron("describe", "hello", "-o", "json"), &description)
		require.Equal(t, "hello", description["definition"].(map[string]any)["name"])
		require.Equal(t, "failed", description["status"].(map[string]any)["last_status"])
		require.Equal(t, false, description["control"].(map[string]any)["paused"])
		require.Len(t, description["next"], 5)
		require.Len(t, description["runs"], 3)

		var leader map[string]any
		read(t, etcdcron("leader", "-o", "json"), &leader)
		require.Equal(t, map[string]any{
			"instance": "a-1-x", "host": "a", "pid": 1.0, "term": float64(w.term.Revision), "address": "127.0.0.1:2390", "elected_at": "2024-06-03T11:00:00Z",
		}, leader)
	})

	t.Run("did you mean", func(t *testing.T) {
		t.Parallel()
		const id = "20240603T115955Z"
		for _, args := range [][]string{
			{"describe", "helo"},
			{"history", "helo"},
			{"history", "helo", "--at", "1h"},
			{"history", "helo", "--status", "failed"},
			{"next", "helo"},
			{"logs", "helo"},
			{"logs", "helo", id},
			{"run", "show", "helo", id},
			{"trigger", "helo"},
			{"cancel", "helo", id},
			{"retry", "helo", id},
			{"pause", "helo"},
			{"resume", "helo"},
			{"backfill", "helo", "--from", "2024-06-03T00:00:00Z", "--to", "2024-06-03T01:00:00Z"},
		} {
			require.Equal(t, called{
				code: exitNotFound, stderr: "error: there is no job \"helo\" under /etcdcron/default/\n" +
					"try: did you mean hello? etcdcron jobs lists them\n",
			}, etcdcron(args...), "%v", args)
		}
	})

	t.Run("nobody leads", func(t *testing.T) {
		t.Parallel()
		const nobody = "nobody leads at the moment, so nothing is run; start an instance with: etcdcron serve -c FILE\n"
		w := lead(t, etcd.Client(t), "idle")
		w.define(state.Spec{Name: "a", Schedule: "@daily", TimeZone: "UTC"})
		_, err := w.client.Delete(t.Context(), w.term.Key)
		require.NoError(t, err)
		require.Equal(t, called{
			stdout: "NAME  SCHEDULE  ZONE  PAUSED  RUNNING  NEXT    LAST  RESULT  SUCCESS\n" +
				"a     @daily    UTC   -       -        in 12h  -     -       -\n",
			stderr: nobody,
		}, etcdcron("jobs", "--namespace", "idle"))
		require.Equal(t, nobody, etcdcron("describe", "a", "--namespace", "idle").stderr)
		require.Empty(t, etcdcron("describe", "a", "--namespace", "idle", "-o", "json").stderr)
	})
}

// history reads on, page by page, until it has what -n asks.
func TestHistory_ManyPages(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	client := etcd.Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	const total = 1203
	for from := 0; from < total; from += 100 {
		var puts []clientv3.Op
		for i := from; i < min(from+100, total); i++ {
			at := noon.Add(-time.Duration(i) * time.Second)
			puts = append(puts, clientv3.OpPut(keys.Run("a", state.RunID(at)), `{"status":"succeeded"}`))
		}
		_, err := client.Txn(t.Context()).Then(puts...).Commit()
		require.NoError(t, err)
	}
	got := call(t, nil, "history", "a", "-n", "1200", "-o", "jsonl", "--endpoints", etcd.Endpoints()[0])
	require.Equal(t, exitOK, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	require.Len(t, lines, 1200)
	require.Contains(t, lines[0], state.RunID(noon))
	require.Contains(t, lines[1199], state.RunID(noon.Add(-1199*time.Second)))
}

// An etcd that stops while a command runs is no connection, within the command's time limit.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	o := &options{surroundings: surroundings{
		stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }, now: time.Now,
	}}
	newRootCommand(o)
	o.endpoints, o.commandTimeout = etcd.Endpoints(), 300*time.Millisecond
	err := o.connected(t.Context(), func(ctx context.Context, c *cluster) error {
		etcd.Stop() //nolint:errcheck // if it goes on, the test fails
		return c.jobs(ctx, false)
	})
	require.Equal(t, exitNoConnection, exitCode(err), "%v", err)
}

// read decodes what a command has printed.
func read(t *testing.T, got called, into any) {
	t.Helper()
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Empty(t, got.stderr) // hints are for tables
	require.NoError(t, json.Unmarshal([]byte(got.stdout), into))
}
