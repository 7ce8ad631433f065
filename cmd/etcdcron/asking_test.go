package main

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/steer"
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
	l := &changingLine{w: &b, terminal: true, width: 9}
	l.show("three")
	l.show("one")
	l.show("one")
	l.end()
	require.Equal(t, "\r\x1b[Kthree\r\x1b[Kone\n", b.String())
	b.Reset()
	l = &changingLine{w: &b, terminal: true, width: 9}
	l.aside(func() { b.WriteString("first\n") })
	l.show("a long one")
	l.aside(func() { b.WriteString("above\n") })
	l.remove()
	require.Equal(t, "first\n\r\x1b[Ka long …\r\x1b[Kabove\n\r\x1b[Ka long …\r\x1b[K", b.String())
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
	require.Equal(t, steer.Note{By: "jo", Reason: "so"}, (&note{by: "jo", reason: "so"}).asked())
	require.Equal(t, steer.Note{By: self()}, (&note{}).asked())
}
