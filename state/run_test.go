package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRunStatusSteps(t *testing.T) {
	legal := map[[2]RunStatus]bool{
		{"", Pending}: true, {"", Running}: true, {"", Skipped}: true, {"", Missed}: true,
		{Pending, Pending}: true, {Pending, Running}: true, {Pending, Skipped}: true, {Pending, Canceled}: true,
		{Running, Running}: true, {Running, Succeeded}: true, {Running, Failed}: true, {Running, Canceled}: true,
	}
	all := []RunStatus{"", Pending, Running, Succeeded, Failed, Skipped, Missed, Canceled}
	for _, from := range all {
		for _, to := range all {
			require.Equal(t, legal[[2]RunStatus{from, to}], from.CanBecome(to), "%q to %q", from, to)
		}
		if from.Final() {
			require.Empty(t, becomes[from], "%q is final", from)
		}
	}
}

func TestRunIDSortsByTimeAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(0, 250_000_000_000).Draw(t, name), 0).UTC()
		}
		a, b := at("a"), at("b")
		require.Equal(t, a.Compare(b), strings.Compare(RunID(a), RunID(b)))
		back, err := RunIDTime(RunID(a) + "-m4f7a")
		require.NoError(t, err)
		require.Equal(t, a, back)
	})
	_, err := RunIDTime("yesterday")
	require.ErrorContains(t, err, "20261130T010000Z")
}

func TestRunRecordReadsAsDocumented(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	code := 3
	r := Run{
		Job: "billing", ID: RunID(at), Trigger: BySchedule, ScheduledAt: at, Status: Failed, Attempt: 1,
		StartedAt: at.Add(12 * time.Millisecond), FinishedAt: at.Add(2 * time.Second), DurationMS: 1988, LatenessMS: 12,
		TimeoutMS: 3_600_000, Instance: "a-1", Term: 7, FencingToken: 9, Error: "exit status 3", ExitCode: &code, Output: "boom",
	}
	require.JSONEq(t, `{"job":"billing","id":"20261130T010000Z","trigger":"schedule","scheduled_at":"2026-11-30T01:00:00Z",
		"status":"failed","attempt":1,"started_at":"2026-11-30T01:00:00.012Z","finished_at":"2026-11-30T01:00:02Z",
		"duration_ms":1988,"lateness_ms":12,"timeout_ms":3600000,"instance":"a-1","term":7,"fencing_token":9,
		"error":"exit status 3","exit_code":3,"output":"boom"}`, string(r.encode()))
}

func TestRunRecordIsBoundedWhateverIsInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "raw")
		times := rapid.IntRange(0, 2000).Draw(t, "times")
		text := strings.Repeat(string(raw), times)
		r := Run{Job: "j", Error: text, Output: text, Attempts: make([]Attempt, 50)}
		b := r.encode()
		require.True(t, json.Valid(b))
		var back Run
		require.NoError(t, json.Unmarshal(b, &back))
		require.LessOrEqual(t, len(back.Error), MaxError)
		require.LessOrEqual(t, len(back.Output), MaxOutput)
		require.Len(t, back.Attempts, MaxAttempts)
		require.True(t, utf8.ValidString(back.Output))
	})
}

func TestCutKeepsTheRightEnd(t *testing.T) {
	long := strings.Repeat("日", 100) // 3 bytes each
	head, tail := CutHead("begin"+long, 32), CutTail(long+"end", 32)
	require.True(t, strings.HasPrefix(head, "begin日") && strings.HasSuffix(head, " [cut]"), head)
	require.True(t, strings.HasPrefix(tail, "[cut] 日") && strings.HasSuffix(tail, "end"), tail)
	require.Equal(t, "short", CutHead("short", 32))
	require.Equal(t, "short", CutTail("short", 32))
}

func TestJobNames(t *testing.T) {
	for _, name := range []string{"a", "daily_billing", "A.b-c_9", "0", strings.Repeat("x", MaxJobName)} {
		require.NoError(t, CheckJobName(name), name)
	}
	for _, name := range []string{
		"", " ", "a/b", "..", ".", "a%2Fb", "a?b", "a#b", "-a", "_a", "job\n", "日報", "e\u0301", "\u00e9", "🙂", "job1 ",
		strings.Repeat("x", MaxJobName+1),
	} {
		require.ErrorIs(t, CheckJobName(name), ErrBadName, "%q", name)
	}
	require.EqualError(t, CheckJobName("team/billing"),
		`bad job name: "team/billing" may have only letters, digits, '.', '_' and '-', and begin with a letter or digit; try "team_billing"`)
}

func TestKeysKeepToTheirNamespace(t *testing.T) {
	k, err := NewKeys("", "")
	require.NoError(t, err)
	require.Equal(t, "/etcdcron/default/", k.Root())
	require.Equal(t, "/etcdcron/default/jobs/a/runs/20261130T010000Z", k.Run("a", "20261130T010000Z"))
	require.NotContains(t, k.Runs("job10"), k.Runs("job1"), "job1 must not touch job10")

	k, err = NewKeys("platform/cron/", "prod")
	require.NoError(t, err)
	require.Equal(t, "/platform/cron/prod/", k.Root())
	for _, bad := range []string{"/a//b", "/../x", "/a b"} {
		_, err := NewKeys(bad, "")
		require.ErrorContains(t, err, "prefix", bad)
	}
	_, err = NewKeys("", "a/b")
	require.ErrorContains(t, err, "namespace")
}
