package executor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// helperVar makes the test binary another process for a test to kill or to look at: see helpers.
const helperVar = "EXECUTOR_TEST_HELPER"

var helpers = map[string]func(){}

func TestMain(m *testing.M) {
	if helper := helpers[os.Getenv(helperVar)]; helper != nil {
		helper()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper is this test binary as another process.
func helper(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// patience is far more than any condition here needs.
const patience = 20 * time.Second

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, what)
}

// start prepares c as the handler would and runs it.
func start(ctx context.Context, c Command, log *zap.Logger) result {
	p, err := c.prepare(os.Environ(), runInfo{})
	if err != nil {
		return result{err: err}
	}
	return p.run(ctx, log)
}

// isPermanent reports whether err was marked by [cronrunner.Permanent].
func isPermanent(err error) bool {
	return fmt.Sprintf("%T", err) == fmt.Sprintf("%T", cronrunner.Permanent(errStop))
}

// run runs a shell command that nobody stops.
func run(t *testing.T, shell string) result {
	t.Helper()
	return start(t.Context(), Command{Shell: shell}, zap.NewNop())
}

// marks are files with which a command tells a test where it is.
type marks struct {
	t   *testing.T
	dir string
}

func newMarks(t *testing.T) marks {
	t.Helper()
	return marks{t, t.TempDir()}
}

func (m marks) has(name string) bool {
	_, err := os.Stat(filepath.Join(m.dir, name))
	return err == nil
}

func (m marks) wait(name string) {
	m.t.Helper()
	eventually(m.t, "the command makes "+name, func() bool { return m.has(name) })
}

// pid waits for a file with a process id and a newline.
func (m marks) pid(name string) int {
	m.t.Helper()
	var pid int
	eventually(m.t, "the command writes "+name, func() bool {
		b, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil || !bytes.HasSuffix(b, []byte{'\n'}) {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

// gone reports whether a process has ended. A zombie has; who reaps orphans where the tests run is
// not known.
func gone(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) == syscall.ESRCH || strings.Contains(string(b), ") Z ")
}

func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid) })
	}
}

func killHard(pid int) {
	syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone
}
