package main

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// What is wrong with a command line is said before anything is asked of etcd.
func TestSteeringUsage(t *testing.T) {
	t.Parallel()
	nowhere := map[string]string{"ETCDCRON_ENDPOINTS": "127.0.0.1:1", "ETCDCRON_DIAL_TIMEOUT": "100ms"}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no job":         {[]string{"trigger"}, exitUsage, "error: etcdcron trigger needs the name of a job\n"},
		"no run":         {[]string{"cancel", "a"}, exitUsage, "error: etcdcron cancel needs the name of a job and the id of a run\n"},
		"too much":       {[]string{"retry", "a", "b", "c"}, exitUsage, "error: etcdcron retry takes the name of a job and the id of a run and nothing else, but there are 3 arguments\n"},
		"bad job":        {[]string{"pause", "a/b"}, exitBadInput, "bad job name"},
		"bad run":        {[]string{"cancel", "a", "last"}, exitBadInput, "error: run id \"last\": want a form such as 20261130T010000Z\ntry: an id from the column RUN of: etcdcron history a\n"},
		"no value":       {[]string{"trigger", "a", "--arg", "x"}, exitUsage, "error: --arg \"x\": write a name and its value, such as month=2026-11\n"},
		"no name":        {[]string{"trigger", "a", "--arg", "=x"}, exitUsage, `error: --arg "=x": the name "" may have only letters`},
		"name of digits": {[]string{"trigger", "a", "--arg", "1=x"}, exitUsage, "and not begin with a digit\n"},
		"odd name":       {[]string{"trigger", "a", "--arg", "a-b=x"}, exitUsage, `the name "a-b" may have only letters, digits and '_'`},
		"twice":          {[]string{"trigger", "a", "--arg", "x=1", "--arg", "x=2"}, exitUsage, "error: --arg \"x=2\": x is given a second time\n"},
		"not UTF-8":      {[]string{"trigger", "a", "--arg", "x=\xff"}, exitUsage, "the value of x is not UTF-8\n"},
		"no range":       {[]string{"backfill", "a", "--from", "2024-01-01T00:00:00Z"}, exitUsage, "error: etcdcron backfill needs --from and --to"},
		"no instant":     {[]string{"backfill", "a", "--from", "yesterday", "--to", "today"}, exitUsage, "write an instant with its offset"},
		"backwards": {
			[]string{"backfill", "a", "--from", "2024-01-02T00:00:00Z", "--to", "2024-01-01T00:00:00Z"},
			exitBadInput,
			"error: --to 2024-01-01T00:00:00Z is before --from 2024-01-02T00:00:00Z\n",
		},
		"the future": {
			[]string{"backfill", "a", "--from", "2024-01-02T00:00:00Z", "--to", "2024-06-03T12:00:01Z"},
			exitBadInput,
			"error: --to 2024-06-03T12:00:01Z is in the future; the schedule itself runs what is to come\ntry: --to 2024-06-03T12:00:00Z\n",
		},
		"no connection": {[]string{"trigger", "a", "--arg", "_a1=", "--arg", "B=x"}, exitNoConnection, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, nowhere, tc.args...)
			require.Equal(t, tc.code, got.code, got.stderr)
			require.Contains(t, got.stderr, tc.want)
			require.Empty(t, got.stdout)
		})
	}
}

func TestStretch(t *testing.T) {
	t.Parallel()
	spec := state.Spec{Name: "a", Schedule: "0 * * * *", TimeZone: "UTC"}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	for name, tc := range map[string]struct {
		from, to, first, last string
		total                 int64
	}{
		"both ends":    {"2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", 3},
		"one":          {"2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", "2024-06-03T01:00:00Z", 1},
		"parts":        {"2024-06-03T01:00:00.5Z", "2024-06-03T03:59:59.5Z", "2024-06-03T02:00:00Z", "2024-06-03T03:00:00Z", 2},
		"other offset": {"2024-06-03T09:00:00+08:00", "2024-06-03T11:00:00+08:00", "2024-06-03T01:00:00Z", "2024-06-03T03:00:00Z", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := stretchOf(&spec, at(tc.from), at(tc.to))
			require.NoError(t, err)
			require.Equal(t, at(tc.first), s.first)
			require.Equal(t, at(tc.last), s.last)
			require.Equal(t, tc.total, s.total)
			require.Equal(t, s.first, s.times(1)[0])
		})
	}

	// Jitter moves when a job is due, not its scheduled times.
	delayed := spec
	delayed.Delay = state.Duration(time.Minute)
	s, err := stretchOf(&delayed, at("2024-06-03T01:00:00Z"), at("2024-06-03T01:00:00Z"))
	require.NoError(t, err)
	require.Equal(t, int64(1), s.total)

	bounded := spec
	bounded.Start, bounded.End = noon.Add(-time.Hour), noon.Add(time.Hour)
	often := spec
	often.Schedule = "@every 1s"
	for name, tc := range map[string]struct {
		spec     state.Spec
		from, to string
		err, try string
	}{
		"none": {
			spec, "2024-06-03T01:00:01Z", "2024-06-03T01:59:59Z", "job a has no scheduled time from 2024-06-03T01:00:01Z to 2024-06-03T01:59:59Z",
			"another range; the nearest scheduled times are 2024-06-03T01:00:00Z and 2024-06-03T02:00:00Z",
		},
		"before the start": {
			bounded, "2024-06-01T01:00:00Z", "2024-06-01T02:00:00Z", "job a has no scheduled time from 2024-06-01T01:00:00Z to 2024-06-01T02:00:00Z",
			"another range; the next scheduled time is 2024-06-03T11:00:00Z",
		},
		"after the end": {
			bounded, "2024-06-05T01:00:00Z", "2024-06-05T02:00:00Z", "job a has no scheduled time from 2024-06-05T01:00:00Z to 2024-06-05T02:00:00Z",
			"another range; the last scheduled time before is 2024-06-03T13:00:00Z",
		},
		"too many": {
			often, "2024-06-03T00:00:00Z", "2024-06-03T23:59:59Z",
			"job a has 86400 scheduled times from 2024-06-03T00:00:00Z to 2024-06-03T23:59:59Z, more than the 10000 of one backfill",
			"smaller ranges, the first one with --to 2024-06-03T02:46:39Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := stretchOf(&tc.spec, at(tc.from), at(tc.to))
			require.EqualError(t, err, tc.err)
			var f *failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, exitBadInput, f.code)
			require.Equal(t, tc.try, f.try)
		})
	}
}

func TestChangingLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &watched{until: "8\n", seen: make(chan struct{})}
		l := &changingLine{w: b}
		for i := range 9 {
			l.show(fmt.Sprint(i))
			time.Sleep(900 * time.Millisecond)
		}
		require.Equal(t, "0\n5\n", b.String(), "a line in five seconds")
		time.Sleep(time.Minute)
		require.Equal(t, "0\n5\n8\n", b.String(), "what came last is told, though later")
		l.show("10")
		l.show("11")
		l.end()
		time.Sleep(time.Minute)
		require.Equal(t, "0\n5\n8\n10\n", b.String())
	})

	var b bytes.Buffer
	l := &changingLine{w: &b, terminal: true}
	l.show("three")
	l.show("one")
	l.show("one")
	l.end()
	require.Equal(t, "\rthree\rone  \n", b.String())
	b.Reset()
	(&changingLine{w: &b, terminal: true}).end()
	require.Empty(t, b.String())
}

func TestWhyNot(t *testing.T) {
	t.Parallel()
	def := state.Definition{Spec: state.Spec{Overlap: "allow", Limit: 10}}
	for reason, want := range map[string]string{
		state.ReasonOverlap:   "the job still runs, and its overlap policy is allow, at most 10 at once",
		state.ReasonQueueFull: "10 runs wait already, as many as may",
		state.ReasonCoalesced: "one waits already, and stands for it too",
		state.ReasonPaused:    "the job was paused meanwhile",
		state.ReasonRetired:   "its job was removed",
	} {
		why, try := whyNot(&state.Run{Job: "a", Reason: reason}, &def)
		require.Equal(t, want, why)
		require.Contains(t, try, "etcdcron ")
	}
}

// What a person hears who follows a run.
func TestHintChange(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := &options{surroundings: surroundings{stderr: &b, now: func() time.Time { return noon }}, output: choice{value: asTable}}
	last := state.Run{}
	for _, r := range []state.Run{
		{ID: "r", Status: state.Pending},
		{ID: "r", Status: state.Pending, Count: 2},
		{ID: "r", Status: state.Running, Attempt: 1, Instance: "a"},
		{ID: "r", Status: state.Running, Attempt: 1, Instance: "a", RetryAt: noon.Add(10 * time.Second), Error: "no luck\nat all"},
		{ID: "r", Status: state.Running, Attempt: 1, Instance: "b", RetryAt: noon.Add(10 * time.Second), Error: "no luck\nat all"},
		{ID: "r", Status: state.Running, Attempt: 2, Instance: "b"},
		{ID: "r", Status: state.Failed, Attempt: 2, Instance: "b"},
	} {
		o.hintChange(&last, &r)
		last = r
	}
	require.Equal(t, `run r waits until the job is idle
run r runs at a
attempt 1 of run r failed: no luck …; the next one begins in 10s
attempt 2 of run r runs at b
`, b.String())
}

func TestSelf(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, self())
	require.LessOrEqual(t, len(self()), maxSelf)
	require.Equal(t, "jo", (&note{by: "jo"}).asker())
	require.Equal(t, self(), (&note{}).asker())
}
