package executor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

func init() { helpers["reap"] = reapHelper }

// reapHelper is a process to which the orphans of its commands come. It ends with 0 if all were reaped
// and no command lost its exit status.
func reapHelper() {
	fail := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
		os.Exit(1)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fail("subreaper: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reaper sync.WaitGroup
	reaper.Go(func() { Reap(ctx) })

	// Reaping far more often than Reap does, so that it meets commands in every state.
	reaper.Go(func() {
		for ctx.Err() == nil {
			reapOrphans()
		}
	})
	var runs sync.WaitGroup
	for i := range 40 {
		runs.Go(func() {
			c := Command{Shell: fmt.Sprintf("setsid sleep 0.02 >/dev/null 2>&1 & sleep 600 & exit %d", i)}
			p, err := c.prepare(os.Environ(), runInfo{})
			if err != nil {
				fail("prepare: %v", err)
			}
			if res := p.run(ctx, zap.NewNop()); res.exit == nil || res.exit.code() != i {
				fail("command %d: %v", i, res.err)
			}
			missing := program{file: "/no/such", argv: []string{"x"}}.run(ctx, zap.NewNop())
			if missing.err == nil || missing.exit != nil {
				fail("a program that is missing: %v", missing.err)
			}
		})
	}
	for range 10 {
		runs.Go(func() {
			for range 30 { // they end as soon as they have begun
				res := program{file: "/bin/sh", argv: []string{"sh", "-c", "exit 9"}, env: []string{}}.run(ctx, zap.NewNop())
				if res.exit == nil || res.exit.code() != 9 {
					fail("a short command: %v", res.err)
				}
			}
		})
	}
	runs.Wait()
	for end := time.Now().Add(patience); ; { // no child at all is left, dead or alive
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.ECHILD {
			break
		}
		if time.Now().After(end) {
			fail("orphans are left: %v", err)
		}
	}
	cancel()
	reaper.Wait()
}

func TestReap(t *testing.T) {
	t.Parallel()
	require.NoError(t, helper(t, "reap").Run())
}

func TestReapIsNotForEverybody(t *testing.T) {
	t.Parallel()
	Reap(t.Context()) // returns at once: orphans do not come to this process
}

func TestReapDoesNotWaitForAStart(t *testing.T) {
	t.Parallel()
	var s childSet
	s.mu.RLock()
	require.False(t, s.exclude(func(func(int) bool) { t.Error("called while a child is being started") }))
	s.mu.RUnlock()
	require.True(t, s.exclude(func(ours func(int) bool) { require.False(t, ours(1)) }))
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	s, err := parseStat([]byte("12 (a) S 1 2) (b) Z 34 56 7 8\n"))
	require.NoError(t, err)
	require.Equal(t, stat{state: 'Z', parent: 34, group: 56}, s)
	for _, bad := range []string{"", "12 (a)", "12 (a) S x 2", "12 (a) S 1 y"} {
		_, err := parseStat([]byte(bad))
		require.Error(t, err)
	}
}

func TestGroupAlive(t *testing.T) {
	t.Parallel()
	own := group{id: syscall.Getpgrp()}
	require.True(t, own.alive())
	require.True(t, own.alive(), "and from what is known")
	none := group{id: 1 << 22}
	require.False(t, none.alive())
}
