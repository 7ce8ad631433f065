package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// scene is an etcd and a scheduler on it that leads, with jobs to steer.
type scene struct {
	t     *testing.T
	etcd  *etcdtest.Cluster
	store *state.Store
	open  chan struct{} // what lets the runs of gated jobs end, one each
}

// The jobs of a scene. None is due by itself while a test goes on.
const (
	sayer  = "sayer"  // says what it was asked with
	faulty = "faulty" // fails
	gated  = "gated"  // runs until let go; skips
	queued = "queued" // runs until let go; queues
	deaf   = "deaf"   // runs until let go, and does not hear that it is canceled
	hourly = "hourly" // says its scheduled time; at the full hour
)

func onScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, etcd: etcdtest.Start(t), open: make(chan struct{})}
	client := s.etcd.Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	s.store = state.NewStore(client, keys, state.StoreConfig{})

	scheduler, err := cronrunner.New(client, cronrunner.Config{InstanceID: "a", DrainTimeout: -1})
	require.NoError(t, err)
	wait := func(ctx context.Context, _ *cronrunner.Run) error {
		select {
		case <-s.open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, j := range []cronrunner.Job{
		{Name: sayer, Handler: func(_ context.Context, run *cronrunner.Run) error {
			run.SetOutput(fmt.Sprintf("args %v\n\x1b[2Jof %s\n", run.Args(), run.Trigger()))
			return nil
		}},
		{Name: faulty, Handler: func(_ context.Context, run *cronrunner.Run) error {
			run.SetOutput("oh no\n")
			return errors.New("it broke\nbadly")
		}},
		{Name: gated, Handler: wait},
		{Name: queued, Handler: wait, Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 1}},
		{Name: deaf, Handler: func(ctx context.Context, _ *cronrunner.Run) error {
			<-s.open
			return nil
		}},
		{Name: hourly, Schedule: "@hourly", Handler: wait, End: time.Now().Add(-time.Hour)},
	} {
		if j.Schedule == "" {
			j.Schedule = "@yearly"
			j.Start = time.Now().AddDate(1, 0, 0)
		}
		require.NoError(t, scheduler.Register(j))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- scheduler.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		close(s.open)
		require.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool { // the jobs are written one by one
		defs, err := s.store.Jobs(t.Context())
		return err == nil && len(defs) == 6
	}, patience, 10*time.Millisecond)
	return s
}

// call runs the command by the clock of the world.
func (s *scene) call(args ...string) called {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(s.t.Context(), append(args, "--endpoints", s.etcd.Endpoints()[0]), surroundings{
		stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: time.Now,
	})
	return called{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// following is a command that goes on while the test does.
type following struct {
	stderr *watched
	stdout bytes.Buffer
	stop   context.CancelFunc
	code   chan int
}

// follow starts a command and waits until it has said a text.
func (s *scene) follow(until string, args ...string) *following {
	s.t.Helper()
	f := &following{stderr: &watched{until: until, seen: make(chan struct{})}, code: make(chan int, 1)}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(s.t.Context())
	s.t.Cleanup(f.stop)
	go func() {
		f.code <- run(ctx, append(args, "--follow", "--endpoints", s.etcd.Endpoints()[0]), surroundings{
			stdout: &f.stdout, stderr: f.stderr, getenv: func(string) string { return "" }, now: time.Now,
		})
	}()
	select {
	case <-f.stderr.seen:
	case code := <-f.code:
		require.Failf(s.t, "it ended", "with %d: %s", code, f.stderr)
	case <-time.After(patience):
		require.Failf(s.t, "it does not say so", "%s: %s", until, f.stderr)
	}
	return f
}

// end waits for the end of the command.
func (f *following) end(t *testing.T) called {
	t.Helper()
	select {
	case code := <-f.code:
		return called{code: code, stdout: f.stdout.String(), stderr: f.stderr.String()}
	case <-time.After(patience):
		require.Fail(t, "it does not end")
		return called{}
	}
}

// ask makes a request and returns what came of it.
func (s *scene) ask(args ...string) (a steer.Asked) {
	s.t.Helper()
	got := s.call(append(args, "-o", "json")...)
	require.Empty(s.t, got.stderr)
	require.NoError(s.t, json.Unmarshal([]byte(got.stdout), &a))
	return a
}

func (s *scene) letGo() {
	s.t.Helper()
	select {
	case s.open <- struct{}{}:
	case <-time.After(patience):
		require.Fail(s.t, "nothing runs")
	}
}

func (s *scene) run(job, id string) state.Run {
	s.t.Helper()
	run, _, err := s.store.Run(s.t.Context(), job, id)
	require.NoError(s.t, err)
	return run
}

func TestTrigger(t *testing.T) {
	t.Parallel()
	s := onScene(t)

	got := s.call("trigger", sayer, "--arg", "b=x=y", "--arg", "a=", "--by", "jo", "--follow")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, "^args map\\[a: b:x=y\\]\n\uFFFD\\[2Jof manual\nsayer \\d{8}T\\d{6}Z-m\\w{8} succeeded: it took \\S+\n$", got.stdout)

	var record state.Run
	read(t, s.call("trigger", sayer, "--follow", "-o", "json", "--by", "jo"), &record)
	require.Equal(t, state.Succeeded, record.Status)
	require.Equal(t, state.ByHand, record.Trigger)
	require.Equal(t, "jo", record.RequestedBy)
	require.Contains(t, record.Output, "\x1b[2J", "JSON says what was printed")

	got = s.call("trigger", faulty, "--follow")
	require.Equal(t, exitRunFailed, got.code)
	require.Equal(t, "oh no\n", got.stdout)
	require.Regexp(t, `error: run \S+ of job faulty failed: it broke …\ntry: etcdcron retry faulty \S+ does it once more\n$`, got.stderr)

	// While it runs, the overlap policy decides.
	first := s.ask("trigger", gated)
	require.Equal(t, steer.Asked{Job: gated, ID: first.ID, Status: "running"}, first)
	got = s.call("trigger", gated)
	require.Equal(t, exitFailed, got.code)
	require.Empty(t, got.stdout)
	require.Regexp(t, `^error: run \S+ of job gated was skipped: the job still runs, and its overlap policy is skip\n`+
		`try: again when it is idle; etcdcron cancel gated `+first.ID+` ends what runs\n$`, got.stderr)
	got = s.call("trigger", gated, "-o", "jsonl")
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `^{"job":"gated","id":"\S+","status":"skipped","reason":"overlap"}\n$`, got.stdout)
	got = s.call("trigger", gated, "--follow")
	require.Equal(t, exitRunFailed, got.code, "with --follow the code is of the run")
	s.letGo()

	// One that waits is followed too.
	running := s.ask("trigger", queued)
	f := s.follow("waits until the job is idle", "trigger", queued)
	got = s.call("trigger", queued)
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "was skipped: a run waits already, as many as may\n")
	s.letGo()
	s.letGo()
	got = f.end(t)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "runs at a-")
	require.Regexp(t, `^queued \S+ succeeded: it took `, got.stdout)
	require.Equal(t, state.Succeeded, s.run(queued, running.ID).Status)
}

// Ctrl-C ends the following, and the run goes on.
func TestTrigger_Interrupted(t *testing.T) {
	t.Parallel()
	s := onScene(t)
	f := s.follow("runs at a-", "trigger", gated)
	f.stop()
	got := f.end(t)
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `error: interrupted; run \S+ of job gated goes on\ntry: etcdcron cancel gated \S+ ends it\n$`, got.stderr)
	def, err := s.store.Job(t.Context(), gated)
	require.NoError(t, err)
	require.Len(t, def.View.Status.Live, 1)
}

func TestSteeringRefused(t *testing.T) {
	t.Parallel()
	s := onScene(t)
	done := s.ask("trigger", sayer)
	f := s.follow("runs at a-", "trigger", gated)
	def, err := s.store.Job(t.Context(), gated)
	require.NoError(t, err)
	live := def.View.Status.Live[0]
	require.Zero(t, s.call("pause", faulty, "--by", "jo", "--reason", "too loud").code)
	require.Eventually(t, func() bool { return s.run(sayer, done.ID).Status.Final() }, patience, 10*time.Millisecond)

	for name, tc := range map[string]struct {
		args []string
		code int
		want string // a pattern
	}{
		"no such job":        {[]string{"trigger", "gatde"}, exitNotFound, `^error: there is no job "gatde" under /etcdcron/default/\ntry: did you mean gated\? etcdcron jobs lists them\n$`},
		"pause no such job":  {[]string{"pause", "gatde"}, exitNotFound, `did you mean gated\?`},
		"resume no such job": {[]string{"resume", "gatde"}, exitNotFound, `did you mean gated\?`},
		"paused":             {[]string{"trigger", faulty}, exitFailed, `^error: job faulty is paused by jo (just now|\d+s ago): too loud\ntry: etcdcron resume faulty\n$`},
		"retry paused":       {[]string{"retry", faulty, "20261130T010000Z"}, exitFailed, `job faulty is paused by jo`},
		"large arguments":    {[]string{"trigger", sayer, "--arg", "a=" + strings.Repeat("x", state.MaxArgs)}, exitBadInput, `^error: bad request: the arguments have 4097 bytes, at most 4096 are allowed\n$`},
		"retry what runs":    {[]string{"retry", gated, live}, exitFailed, `^error: run ` + live + ` of job gated is not over yet\ntry: again when it is; etcdcron cancel gated ` + live + ` ends it now\n$`},
		"retry nothing":      {[]string{"retry", gated, "20261130T010000Z"}, exitNotFound, `^error: job gated has no run and no request 20261130T010000Z\n`},
		"cancel what is over": {
			[]string{"cancel", sayer, done.ID},
			exitFailed,
			`^error: run ` + done.ID + ` of job sayer is over already: it succeeded (just now|\d+s ago)\ntry: etcdcron retry sayer ` + done.ID + ` does it once more\n$`,
		},
		"cancel nothing":       {[]string{"cancel", gated, "20261130T010000Z"}, exitNotFound, `^error: job gated has no run and no request 20261130T010000Z\ntry: etcdcron history gated `},
		"cancel another job's": {[]string{"cancel", sayer, live}, exitNotFound, `^error: job sayer has no run and no request ` + live},
		"backfill of nothing":  {[]string{"backfill", faulty, "--from", "2020-01-01T00:00:00Z", "--to", "2020-01-01T00:00:00Z"}, exitBadInput, `^error: job faulty has no scheduled time from`},
	} {
		got := s.call(tc.args...)
		require.Equal(t, tc.code, got.code, "%s: %s", name, got.stderr)
		require.Regexp(t, tc.want, got.stderr, name)
		require.Empty(t, got.stdout, name)
	}
	requests, err := s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, requests, "nothing was asked for")
	s.letGo()
	require.Zero(t, f.end(t).code)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := onScene(t)

	// One that runs.
	run := s.ask("trigger", gated)
	got := s.call("cancel", gated, run.ID, "--by", "jo", "--reason", "too slow")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `^gated `+run.ID+` canceled: it ran for \S+\n$`, got.stdout)
	require.Equal(t, "canceled by jo: too slow", s.run(gated, run.ID).Error)

	// One that waits.
	first, second := s.ask("trigger", queued), s.ask("trigger", queued)
	require.Equal(t, "pending", second.Status)
	require.Equal(t, steer.Asked{Job: queued, ID: second.ID, Status: "canceled", Reason: state.ReasonRequested}, s.ask("cancel", queued, second.ID))
	third := s.ask("trigger", queued)
	got = s.call("cancel", queued, third.ID)
	require.Equal(t, "queued "+third.ID+" canceled: it had not begun\n", got.stdout)
	require.Equal(t, steer.Asked{Job: queued, ID: first.ID, Status: "canceled", Reason: state.ReasonRequested}, s.ask("cancel", queued, first.ID))

	// One that is followed elsewhere.
	f := s.follow("runs at a-", "trigger", gated)
	def, err := s.store.Job(t.Context(), gated)
	require.NoError(t, err)
	require.Zero(t, s.call("cancel", gated, def.View.Status.Live[0], "--by", "jo").code)
	got = f.end(t)
	require.Equal(t, exitRunFailed, got.code)
	require.Regexp(t, `error: run \S+ of job gated was canceled: canceled by jo\n`, got.stderr)

	// One that does not stop, and then ends as if nothing had been.
	run = s.ask("trigger", deaf)
	got = s.call("cancel", deaf, run.ID, "--command-timeout", "300ms")
	require.Zero(t, got.code)
	require.Equal(t, "deaf "+run.ID+" running: it is to be canceled, and has not ended yet\n", got.stdout)
	require.Equal(t, "it may take the job's grace, 3.8s; etcdcron history deaf shows how it ends\n", got.stderr)
	require.Contains(t, s.call("describe", deaf).stdout, "\nRequests:     "+run.ID+": to be canceled, by ")
	again := make(chan called, 1)
	go func() { again <- s.call("cancel", deaf, run.ID, "--command-timeout", "30s") }()
	s.letGo()
	got = <-again
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `^error: run `+run.ID+` of job deaf (was not canceled: it succeeded before it could be stopped|is over already)`, got.stderr)
}

func TestRetry(t *testing.T) {
	t.Parallel()
	s := onScene(t)
	var first, second state.Run
	read(t, s.call("trigger", sayer, "--arg", "a=1", "--follow", "-o", "json"), &first)
	read(t, s.call("retry", sayer, first.ID, "--by", "jo", "--follow", "-o", "json"), &second)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, first.ID, second.RetryOf)
	require.Equal(t, first.ScheduledAt, second.ScheduledAt)
	require.Equal(t, first.Args, second.Args)
	require.Contains(t, s.call("history", sayer, "-o", "wide").stdout, "  jo        retry of "+first.ID+"; with a=1\n")

	got := s.call("retry", sayer, first.ID)
	require.Zero(t, got.code)
	require.Regexp(t, `^sayer \S+-r\w{8} (running|succeeded)\n$`, got.stdout)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := onScene(t)

	got := s.call("pause", gated, "--reason", "too loud")
	require.Equal(t, called{stdout: "job gated is paused: it starts nothing more until it is resumed; a run that is running goes on\n"}, got)
	def, err := s.store.Job(t.Context(), gated)
	require.NoError(t, err)
	require.Equal(t, self(), def.Control.By)
	require.Contains(t, s.call("describe", gated).stdout, "\nState:        paused by "+self()+" ")

	var control map[string]any
	read(t, s.call("pause", gated, "--by", "jo", "-o", "json"), &control)
	require.Equal(t, "gated", control["job"])
	require.Equal(t, true, control["paused"])
	require.Equal(t, "jo", control["by"])
	require.Contains(t, s.call("pause", gated).stdout, "job gated stays paused: ")

	require.Regexp(t, `^job gated is resumed: it is due next at \S+, in \w+\n$`, s.call("resume", gated).stdout)
	require.Equal(t, called{stdout: "job gated is not paused, so there is nothing to resume\n"}, s.call("resume", gated))
	read(t, s.call("resume", gated, "-o", "json"), &control)
	require.Equal(t, false, control["paused"])

	// A job that is not due any more can be paused too, and then not be backfilled.
	require.Zero(t, s.call("pause", hourly).code)
	got = s.call("backfill", hourly, "--from", "2026-01-05T00:00:00Z", "--to", "2026-01-05T05:00:00Z")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "error: job hourly is paused by ")
	require.Equal(t, "job hourly is resumed\n", s.call("resume", hourly).stdout, "it is not due any more")
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	s := onScene(t)
	day := []string{"--from", "2026-01-05T00:00:00Z", "--to", "2026-01-05T23:59:59Z"}
	three := []string{"--from", "2026-01-05T01:00:00Z", "--to", "2026-01-05T03:00:00Z"}
	backfill := func(args ...string) []string { return append([]string{"backfill", hourly}, args...) }

	got := s.call(backfill(append(day, "--dry-run")...)...)
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `^job hourly would run 24 scheduled times, from 2026-01-05T00:00:00Z to 2026-01-05T23:00:00Z

LOCAL +UTC +WHEN
Mon 2026-01-05 00:00:00 \+00:00  2026-01-05T00:00:00Z  \w+ ago
(.*\n){4}$`, got.stdout)
	require.Equal(t, "and 19 more; nothing was asked for\n", got.stderr)
	var p steer.Preview
	read(t, s.call(backfill(append(three, "--dry-run", "-o", "json")...)...), &p)
	require.Equal(t, int64(3), p.Total)
	require.Len(t, p.Times, 3)
	requests, err := s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, requests)

	// It goes on one run at a time, and is followed to the end of its last run.
	f := s.follow("1 of 3 begun, next 2026-01-05T02:00:00Z", backfill(append(three, "--by", "jo")...)...)
	for range 3 {
		s.letGo()
	}
	got = f.end(t)
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `^hourly \S+-b\w{8} done: 3 runs, 3 succeeded\n$`, got.stdout)
	require.Regexp(t, `^backfill \S+ of 3 scheduled times, from 2026-01-05T01:00:00Z to 2026-01-05T03:00:00Z\n1 of 3 begun, `, got.stderr)
	_, suffix, _ := strings.Cut(strings.Fields(got.stdout)[1], "-")
	run := s.run(hourly, "20260105T020000Z-"+suffix)
	require.Equal(t, state.ByBackfill, run.Trigger)
	require.Equal(t, "jo", run.RequestedBy)

	// Withdrawn when the first of its runs has begun: that goes on, here until it is canceled.
	var asked steer.AskedBackfill
	read(t, s.call(backfill(append(day, "-o", "json")...)...), &asked)
	require.Equal(t, int64(24), asked.Total)
	require.Equal(t, steer.Requested, asked.Status)
	_, suffix, _ = strings.Cut(asked.ID, "-")
	require.Eventually(t, func() bool {
		r, err := s.store.Request(t.Context(), asked.ID)
		return err == nil && r.Done == 1
	}, patience, 10*time.Millisecond)
	require.Contains(t, s.call("describe", hourly).stdout, "\nRequests:     "+asked.ID+": backfill from 2026-01-05T00:00:00Z to 2026-01-05T23:59:59Z, 1 of 24 begun, next 2026-01-05T01:00:00Z, by ")
	got = s.call("cancel", hourly, asked.ID)
	require.Equal(t, called{stdout: "hourly " + asked.ID + " withdrawn: 1 of 24 runs of the backfill had begun; the others will not run\n"}, got)
	require.Equal(t, state.Running, s.run(hourly, "20260105T000000Z-"+suffix).Status)
	require.Zero(t, s.call("cancel", hourly, "20260105T000000Z-"+suffix).code)

	// A run that does not succeed makes the exit code.
	f = s.follow("1 of 3 begun", backfill(three...)...)
	def, err := s.store.Job(t.Context(), hourly)
	require.NoError(t, err)
	require.Zero(t, s.call("cancel", hourly, def.View.Status.Live[0]).code)
	s.letGo()
	s.letGo()
	got = f.end(t)
	require.Equal(t, exitRunFailed, got.code)
	require.Regexp(t, `^hourly \S+ done: 3 runs, 2 succeeded, 1 canceled\n$`, got.stdout)
	require.Regexp(t, `error: 1 run of backfill \S+ did not succeed\ntry: etcdcron history hourly --before 20260105T030001Z lists them, the newest first\n$`, got.stderr)

	// And so does its early end.
	f = s.follow("1 of 24 begun", backfill(day...)...)
	requests, err = s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.call("cancel", hourly, requests[0].ID).code)
	s.letGo()
	got = f.end(t)
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `^hourly \S+ withdrawn: 1 of 24 runs begun, 1 succeeded\n$`, got.stdout)
	require.Contains(t, got.stderr, "ended early: it was withdrawn, or its job removed\n")

	// Ctrl-C ends the following alone.
	f = s.follow("1 of 24 begun", backfill(day...)...)
	f.stop()
	got = f.end(t)
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `error: interrupted; backfill \S+ of job hourly goes on\n`, got.stderr)
	requests, err = s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, requests, 1)
}

// Requests stand until somebody leads, and can be taken back until then.
func TestSteering_NobodyLeads(t *testing.T) {
	t.Parallel()
	s := &scene{t: t, etcd: etcdtest.Start(t)}
	w := lead(t, s.etcd.Client(t), "")
	s.store = w.store
	def := w.define(state.Spec{Name: "a", Schedule: "@hourly", TimeZone: "UTC"})
	w.run(def, def.View, time.Hour, state.Run{Status: state.Failed})
	w.define(state.Spec{Name: "gone", Schedule: "@hourly", TimeZone: "UTC", Retired: true})
	w.define(state.Spec{Name: "odd", Schedule: "often", TimeZone: "UTC"})
	w.put(w.keys.Spec("broken"), "{")
	w.put(w.keys.Status("broken"), "{}")
	_, err := w.client.Delete(t.Context(), w.term.Key)
	require.NoError(t, err)
	const standing = "nobody leads at the moment; it is acted on as soon as an instance does: etcdcron serve -c FILE\n"
	soon := []string{"--command-timeout", "300ms"}

	got := s.call(append(soon, "trigger", "a", "--by", "jo", "--reason", "now")...)
	require.Zero(t, got.code)
	require.Regexp(t, `^a \S+ requested\n$`, got.stdout)
	require.Equal(t, standing, got.stderr)
	trigger := strings.Fields(got.stdout)[1]
	retry := s.ask(append(soon, "retry", "a", state.RunID(noon.Add(-time.Hour)))...)
	require.Equal(t, steer.Requested, retry.Status)
	got = s.call("backfill", "a", "--from", "2024-01-05T01:00:00Z", "--to", "2024-01-05T01:59:00Z")
	require.Zero(t, got.code)
	require.Regexp(t, `^a \S+ requested: backfill of the scheduled time 2024-01-05T01:00:00Z\n$`, got.stdout)
	backfill := strings.Fields(got.stdout)[1]
	require.Equal(t, "etcdcron describe a shows how far it is; etcdcron cancel a "+backfill+" withdraws what has not begun\n"+standing, got.stderr)

	described := s.call("describe", "a").stdout
	require.Regexp(t, `\n\w*:? +`+trigger+`: trigger, by jo .*: now\n`, described)
	require.Contains(t, described, retry.ID+": retry of 20240603T110000Z, by ")
	require.Contains(t, described, backfill+": backfill from 2024-01-05T01:00:00Z to 2024-01-05T01:59:00Z, 0 of 1 begun, by ")
	var description map[string]any
	read(t, s.call("describe", "a", "-o", "json"), &description)
	require.Len(t, description["requests"], 3)

	require.Equal(t, called{stdout: "a " + trigger + " withdrawn: the trigger was not acted on yet\n"}, s.call("cancel", "a", trigger))
	require.Equal(t, steer.Asked{Job: "a", ID: retry.ID, Status: steer.Withdrawn}, s.ask("cancel", "a", retry.ID))
	require.Equal(t, "a "+backfill+" withdrawn: 0 of 1 runs of the backfill had begun; the others will not run\n", s.call("cancel", "a", backfill).stdout)
	require.Equal(t, exitNotFound, s.call("cancel", "a", trigger).code)

	// Somebody takes back what somebody else follows.
	f := s.follow("nobody leads", append(soon, "trigger", "a")...)
	requests, err := s.store.Requests(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.call("cancel", "a", requests[0].ID).code)
	got = f.end(t)
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `error: run \S+ of job a will not be: its request was withdrawn, or its job removed\n`, got.stderr)
	f = s.follow("nobody leads", append(soon, "trigger", "a")...)
	f.stop()
	got = f.end(t)
	require.Equal(t, exitFailed, got.code)
	require.Regexp(t, `error: interrupted; run \S+ of job a was asked for all the same\ntry: etcdcron cancel a \S+ takes it back\n$`, got.stderr)

	// Jobs that cannot run.
	for job, want := range map[string]string{
		"gone":   "error: job gone is retired: the leader no longer has it\ntry: put it back into the jobs file, and start serve again\n",
		"broken": "error: job broken is invalid: spec of job broken: stored value cannot be decoded: unexpected end of JSON input\n",
	} {
		for _, args := range [][]string{
			{"trigger", job},
			{"retry", job, "20240603T110000Z"},
			{"backfill", job, "--from", "2024-01-05T01:00:00Z", "--to", "2024-01-05T01:59:00Z"},
		} {
			require.Equal(t, called{code: exitFailed, stderr: want}, s.call(args...))
		}
	}
	got = s.call("backfill", "odd", "--from", "2024-01-05T01:00:00Z", "--to", "2024-01-05T01:59:00Z")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "error: job odd is invalid: ")
	const retired = "job gone is retired: the leader no longer has it, so it does not run in any case\n"
	require.Equal(t, retired, s.call("pause", "gone").stderr)
	require.Equal(t, "and 1 more; nothing was asked for\njob gone is retired: the leader no longer has it; before the backfill: put it back into the jobs file, and start serve again\n",
		s.call("backfill", "gone", "--from", "2024-01-05T00:00:00Z", "--to", "2024-01-05T05:00:00Z", "--dry-run").stderr)
}
