package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

var errStop = errors.New("the test says stop")

// stopped runs a shell command in m's directory, stops it when it has made the file ready, and returns
// how it ended and how longGrace it took to stop.
func stopped(t *testing.T, m marks, grace time.Duration, shell string) (result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan result, 1)
	go func() { done <- start(ctx, Command{Dir: m.dir, Shell: shell, Grace: grace}, zap.NewNop()) }()
	m.wait("ready")
	begun := time.Now()
	cancel(errStop)
	res := <-done
	require.ErrorIs(t, res.err, errStop)
	return res, time.Since(begun)
}

const longGrace = time.Minute // a grace that no test waits for

func TestStopIsATermToTheGroup(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, took := stopped(t, m, longGrace, "sleep 600 & echo $! >child; echo $$ >leader; touch ready; wait")
	require.EqualError(t, res.err, "stopped: the test says stop (ended with signal SIGTERM)")
	require.Equal(t, 143, res.exit.code())
	require.Less(t, took, patience)
	requireGone(t, m.pid("leader"), m.pid("child"))
}

func TestStopOfThoseThatTrapTerm(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, took := stopped(t, m, 300*time.Millisecond, `
		trap "" TERM; echo $$ >leader
		(trap "" TERM; sh -c 'echo $$ >grandchild; touch ready; while :; do sleep 1; done' & echo $! >child; wait) &
		while :; do sleep 1; done`)
	require.Equal(t, 137, res.exit.code())
	require.GreaterOrEqual(t, took, 300*time.Millisecond)
	requireGone(t, m.pid("leader"), m.pid("child"), m.pid("grandchild"))
}

// A shell dies of SIGTERM at once; what it runs has the grace period all the same.
func TestGraceIsForTheWholeGroup(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, took := stopped(t, m, longGrace, `
		(trap "sleep 0.1; echo tidy; touch tidied; exit" TERM; touch ready; while :; do sleep 0.01; done) & wait`)
	require.True(t, m.has("tidied"))
	require.Contains(t, res.output, "tidy\n")
	require.Less(t, took, patience, "and no longer than it takes")
}

func TestGrandchildThatTrapsTermIsGoneAfterTheGrace(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	_, took := stopped(t, m, 300*time.Millisecond, `
		(trap "" TERM; sh -c 'echo $$ >child; touch ready; exec sleep 600') & wait`)
	require.GreaterOrEqual(t, took, 300*time.Millisecond)
	requireGone(t, m.pid("child"))
}

func TestStoppedIsStoppedWhateverTheExitCode(t *testing.T) {
	t.Parallel()
	res, _ := stopped(t, newMarks(t), longGrace, `trap "exit 0" TERM; touch ready; while :; do sleep 0.01; done`)
	require.EqualError(t, res.err, "stopped: the test says stop (ended with exit status 0)")
	require.Equal(t, 0, res.exit.code())
}

// A process that is halted takes SIGTERM only when it is continued.
func TestStopOfAHaltedCommand(t *testing.T) {
	t.Parallel()
	res, took := stopped(t, newMarks(t), longGrace, `trap "exit 7" TERM; touch ready; kill -STOP $$; while :; do sleep 0.01; done`)
	require.Less(t, took, patience)
	require.Equal(t, 7, res.exit.code())
}

// A holder of the pipe outside the group costs a stop no more than cutTime: the lock does not wait.
func TestStopDoesNotWaitForAHeldPipe(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, _ := stopped(t, m, longGrace, `setsid sh -c 'echo $$ >pid; exec sleep 600' & while ! [ -s pid ]; do sleep 0.01; done; touch ready; wait`)
	pid := m.pid("pid")
	t.Cleanup(func() { killHard(pid) })
	require.Contains(t, res.output, "[cut: ")
}

func TestEndedByItselfIsTheTruth(t *testing.T) {
	t.Parallel()
	c, err := startChild(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}, SysProcAttr: processAttr()})
	require.NoError(t, err)
	eventually(t, "the command exits", c.hasExited)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	for range 30 { // either may be seen first
		require.False(t, program{}.supervise(ctx, c, &output{}, zap.NewNop()))
	}
	require.Less(t, time.Since(begun), 10*settleTime, "no time for output when ctx has ended")
	exit, err := c.reap()
	require.NoError(t, err)
	require.Equal(t, 3, exit.code())
}

func init() {
	helpers["deserter"] = func() {
		group, err := syscall.Getpgid(os.Getppid())
		if err == nil {
			err = syscall.Setpgid(0, group)
		}
		if err == nil {
			err = os.WriteFile("ready", nil, 0o600)
		}
		fmt.Println(err)
		select {}
	}
}

func TestStopOfACommandThatLeftItsGroup(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, _ := stopped(t, m, 100*time.Millisecond, "export "+helperVar+"=deserter; exec "+os.Args[0])
	require.Equal(t, 137, res.exit.code())
}

func TestStoppedBeforeTheStart(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	res := start(ctx, Command{Dir: m.dir, Shell: "touch ran"}, zap.NewNop())
	require.ErrorIs(t, res.err, errStop)
	require.Nil(t, res.exit)
	require.False(t, m.has("ran"))
}
