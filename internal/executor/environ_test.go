package executor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	inherited := []string{
		"PATH=/usr/bin:/bin", "HOME=/h", "MINE=old", "PWD=/nowhere",
		"ETCDCRON_PASSWORD=secret", "ETCDCRON_JOB=outer", "ETCDCRON_ARG_outer=x", "ETCDCTL_USER=root:secret",
	}
	run := runInfo{
		job: "j", id: "20261130T010000Z", trigger: "catch_up", attempt: 2, fencingToken: 42,
		scheduledAt: time.Date(2026, 11, 30, 9, 0, 0, 0, time.FixedZone("CST", 8*3600)),
		args: map[string]string{
			"Region": "cn north=1", "region": "", "7_": "$(x)\tÜ",
			"": "x", "../JOB": "x", "A=B": "x", "a b": "x", "é": "x", "JOB=x\nETCDCRON_JOB": "x", "a\x00": "x", "a-b": "x",
		},
	}
	c := Command{Argv: []string{"env"}, Dir: "/", Env: map[string]string{"MINE": "new", "ETCDCTL_ENDPOINTS": "given"}}
	p, err := c.prepare(inherited, run)
	require.NoError(t, err)
	res := p.run(t.Context(), zap.NewNop())
	require.NoError(t, res.err)
	require.ElementsMatch(t, []string{
		"PATH=/usr/bin:/bin", "HOME=/h", "MINE=new", "PWD=/", "ETCDCTL_ENDPOINTS=given",
		"ETCDCRON_JOB=j", "ETCDCRON_RUN_ID=20261130T010000Z", "ETCDCRON_SCHEDULED_AT=2026-11-30T01:00:00Z",
		"ETCDCRON_ATTEMPT=2", "ETCDCRON_FENCING_TOKEN=42", "ETCDCRON_TRIGGER=catch_up",
		"ETCDCRON_ARG_Region=cn north=1", "ETCDCRON_ARG_region=", "ETCDCRON_ARG_7_=$(x)\tÜ",
	}, strings.Split(strings.TrimSpace(res.output), "\n"))
}

func TestArgumentsThatAreLeftOutAreLogged(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	run := &fakeRun{args: map[string]string{"month": "2026-11", "z z": "x", "JOB=x": "x"}}
	require.NoError(t, Command{Shell: `echo "$ETCDCRON_JOB $ETCDCRON_ARG_month"`}.do(t.Context(), run, zap.New(core), nil))
	require.Equal(t, "billing 2026-11\n", run.output)
	require.Equal(t, 1, logs.Len())
	require.Equal(t, []any{"JOB=x", "z z"}, logs.All()[0].ContextMap()["left_out"])
}

// What a value cannot be is no reason to do something else than was asked for.
func TestAnArgumentThatCannotBeHandedOverFailsTheRun(t *testing.T) {
	t.Parallel()
	run := &fakeRun{args: map[string]string{"month": "2026\x00"}}
	require.ErrorContains(t, Command{Shell: "true"}.do(t.Context(), run, zap.NewNop(), nil), "NUL")
}
