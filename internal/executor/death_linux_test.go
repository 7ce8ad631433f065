package executor

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func init() {
	helpers["run"] = func() {
		Command{Argv: []string{"sh", "-c", "echo $$ >pid; while :; do sleep 0.01; done"}, Dir: os.Args[1]}.do(context.Background(), &fakeRun{}, zap.NewNop(), nil) //nolint:errcheck // it is killed
	}
}

func TestCommandDiesWithItsScheduler(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	scheduler := helper(t, "run", m.dir)
	require.NoError(t, scheduler.Start())
	pid := m.pid("pid")
	require.False(t, gone(pid))
	require.NoError(t, scheduler.Process.Kill())
	require.Error(t, scheduler.Wait())
	requireGone(t, pid)
}
