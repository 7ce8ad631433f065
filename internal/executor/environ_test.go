package executor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	inherited := []string{
		"PATH=/usr/bin:/bin", "HOME=/h", "MINE=old", "PWD=/nowhere",
		"ETCDCRON_PASSWORD=secret", "ETCDCRON_JOB=outer", "ETCDCTL_USER=root:secret",
	}
	run := runInfo{
		job: "j", id: "20261130T010000Z", trigger: "catch_up", attempt: 2, fencingToken: 42,
		scheduledAt: time.Date(2026, 11, 30, 9, 0, 0, 0, time.FixedZone("CST", 8*3600)),
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
	}, strings.Split(strings.TrimSpace(res.output), "\n"))
}
