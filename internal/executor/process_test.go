package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

type fakeRun struct {
	args     map[string]string
	output   string
	exitCode *int

	mu         sync.Mutex
	progress   []report
	checkpoint json.RawMessage
	taken      []string // every checkpoint, in order
	save       func(context.Context, json.RawMessage) error
	restore    func() error
}

func (r *fakeRun) Job() string            { return "billing" }
func (r *fakeRun) ID() string             { return "20261130T010000Z" }
func (r *fakeRun) Trigger() state.Trigger { return state.BySchedule }
func (r *fakeRun) ScheduledAt() time.Time { return time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC) }
func (r *fakeRun) Attempt() int           { return 1 }
func (r *fakeRun) Term() int64            { return 5 }
func (r *fakeRun) FencingToken() int64    { return 7 }

func (r *fakeRun) Args() map[string]string { return r.args }

func (r *fakeRun) Progress(done, total int64, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, report{done, total, message})
}

// Checkpoint goes the way through JSON that a [cronrunner.Run]'s goes.
func (r *fakeRun) Checkpoint(ctx context.Context, v any) error {
	value, err := json.Marshal(v)
	if err == nil && len(value) > state.MaxCheckpoint {
		err = cronrunner.ErrCheckpointTooLarge
	}
	if err == nil && r.save != nil {
		err = r.save(ctx, value)
	}
	if err != nil {
		return err
	}
	stored, err := json.Marshal(state.Checkpoint{Value: value})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var c state.Checkpoint
	r.checkpoint, r.taken = nil, append(r.taken, string(value))
	err = json.Unmarshal(stored, &c)
	r.checkpoint = c.Value
	return err
}

func (r *fakeRun) Restore(_ context.Context, v any) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restore != nil {
		if err := r.restore(); err != nil {
			return false, err
		}
	}
	if r.checkpoint == nil {
		return false, nil
	}
	return true, json.Unmarshal(r.checkpoint, v)
}

func (r *fakeRun) SetOutput(s string)   { r.output = s }
func (r *fakeRun) SetExitCode(code int) { r.exitCode = &code }

func TestRunGetsOutcome(t *testing.T) {
	t.Parallel()
	run := &fakeRun{}
	err := Command{Shell: `cat; echo "$ETCDCRON_JOB $ETCDCRON_FENCING_TOKEN"; exit 3`}.do(t.Context(), run, zap.NewNop(), nil)
	require.EqualError(t, err, "exit status 3")
	require.Equal(t, 3, *run.exitCode)
	require.Equal(t, "billing 7\n", run.output, "and standard input is empty")
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]ExitError{
		"exit 0":                     {},
		"exit 1":                     {Code: 1},
		"exit 126":                   {Code: 126, Hint: "the shell could not execute a command"},
		"exit 255":                   {Code: 255},
		"exit 137":                   {Code: 137},
		"false | true":               {},
		"true | false":               {Code: 1},
		"kill -KILL $$":              {Code: 137, Signal: syscall.SIGKILL, Hint: "not by the scheduler; out of memory?"},
		"kill -TERM $$":              {Code: 143, Signal: syscall.SIGTERM},
		"ulimit -c 0; kill -SEGV $$": {Code: 139, Signal: syscall.SIGSEGV},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			res := run(t, shell)
			require.Equal(t, want.Code, res.exit.code())
			if want == (ExitError{}) {
				require.NoError(t, res.err)
				return
			}
			got, ok := errors.AsType[*ExitError](res.err)
			require.True(t, ok, "%v", res.err)
			require.Equal(t, want, *got)
		})
	}
	require.EqualError(t, &ExitError{Code: 139, Signal: syscall.SIGSEGV, CoreDumped: true, Hint: "why"}, "killed by signal SIGSEGV, core dumped (why)")
}

func TestLeftoversOfTheGroupAreKilled(t *testing.T) {
	t.Parallel()
	for name, redirect := range map[string]string{"with the output": "", "without it": ">/dev/null 2>&1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMarks(t)
			res := start(t.Context(), Command{Dir: m.dir, Shell: `(trap "" TERM HUP; exec sleep 600) ` + redirect + ` & echo $! >pid; echo done`}, zap.NewNop())
			require.NoError(t, res.err)
			require.Equal(t, "done\n", res.output)
			requireGone(t, m.pid("pid"))
		})
	}
}

// The filter at the end of a pipe may still write when the main process has exited.
func TestLateOutputIsKept(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	require.NoError(t, syscall.Mkfifo(m.dir+"/go", 0o600))
	time.AfterFunc(settleTime/4, func() { os.WriteFile(m.dir+"/go", []byte("late\n"), 0) }) //nolint:errcheck // seen below
	res := start(t.Context(), Command{Dir: m.dir, Shell: "cat go & exit 5"}, zap.NewNop())
	require.Equal(t, 5, res.exit.code())
	require.Equal(t, "late\n", res.output)
}

func TestPipeHeldOutsideTheGroupIsCut(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]string{"silent": "sleep 600", "chatty": "yes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMarks(t)
			begun := time.Now()
			res := start(t.Context(), Command{Dir: m.dir, Shell: "echo hello; setsid sh -c 'echo $$ >pid; exec " + holder + "' & while ! [ -s pid ]; do sleep 0.01; done"}, zap.NewNop())
			pid := m.pid("pid")
			t.Cleanup(func() { killHard(pid) })
			require.NoError(t, res.err)
			require.Less(t, time.Since(begun), patience)
			require.LessOrEqual(t, len(res.output), state.MaxOutput)
			require.Contains(t, res.output, "\n[cut: a process outside the command's group held its output open]")
			if name == "silent" {
				require.Contains(t, res.output, "hello\n")
				require.False(t, gone(pid), "it left the group, so it is not killed")
			}
		})
	}
}

func TestStatusTakenBySomethingElse(t *testing.T) {
	t.Parallel()
	c, err := startChild(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "read x"}, SysProcAttr: processAttr()})
	require.NoError(t, err)
	_, err = syscall.Wait4(c.pid, nil, 0, nil)
	require.NoError(t, err)
	<-c.exited
	require.True(t, hasExited(c.pid))
	_, err = c.reap()
	require.ErrorIs(t, err, syscall.ECHILD)
}

func TestNoSignalToAnIDThatIsNotOurs(t *testing.T) {
	t.Parallel()
	require.False(t, awaitExit(os.Getppid()), "no child of this process")
	stranger := exec.CommandContext(t.Context(), "sleep", "600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, stranger.Start())
	pid := stranger.Process.Pid
	require.False(t, hasExited(pid))
	c := &child{pid: pid, group: group{id: pid}, exited: make(chan struct{})}
	close(c.exited)
	require.NoError(t, c.signal(syscall.SIGKILL))
	require.NoError(t, stranger.Process.Signal(syscall.SIGTERM))
	require.EqualError(t, stranger.Wait(), "signal: terminated", "SIGKILL would have had precedence")
}

func TestNoSignalToEverybody(t *testing.T) {
	t.Parallel()
	require.Error(t, (&group{id: 1}).signal(0))
	require.Error(t, (&group{}).signal(0))
}

func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			c := Command{Shell: fmt.Sprintf("echo %d; exit %d", i, i), Grace: time.Second}
			if i%5 == 0 {
				c.Shell = "sleep 600 & wait"
				cause := fmt.Errorf("stop %d", i)
				time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
			}
			res := start(ctx, c, zap.NewNop())
			if i%5 == 0 {
				require.ErrorIs(t, res.err, context.Cause(ctx))
				return
			}
			require.Equal(t, i, res.exit.code())
			require.Equal(t, fmt.Sprintln(i), strings.SplitAfter(res.output, "\n")[0], "a machine that is busy may cut what comes after")
		})
	}
	wg.Wait()
}

// The parent-death signal comes when the thread that forked ends. Go seldom moves a goroutine between its
// fork and its wait, so a thread that is not kept shows here only now and then.
func TestCommandOutlivesThreads(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	require.NoError(t, syscall.Mkfifo(m.dir+"/go", 0o600))
	const commands = 30
	done := make(chan result, commands)
	for i := range commands {
		c := Command{Dir: m.dir, Shell: fmt.Sprintf("touch ready%d; read x <go", i)}
		go func() { done <- start(t.Context(), c, zap.NewNop()) }()
	}
	for i := range commands {
		for !m.has(fmt.Sprint("ready", i)) {
			var threads sync.WaitGroup
			for range 20 {
				threads.Go(runtime.LockOSThread) // a goroutine that ends locked takes its thread with it
			}
			threads.Wait()
			require.Empty(t, done, "no command has ended")
		}
	}
	gate, err := os.OpenFile(m.dir+"/go", os.O_RDWR, 0) // also for reading, so that it does not wait for a reader
	require.NoError(t, err)
	defer gate.Close()
	for range commands {
		_, err := gate.WriteString("\n")
		require.NoError(t, err)
	}
	for range commands {
		require.NoError(t, (<-done).err)
	}
}

// Not parallel: nothing else opens files meanwhile.
func TestNoDescriptorIsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		require.NoError(t, err)
		return len(entries)
	}
	run(t, "true") // what the first start opens for good
	before := count()
	for range 5 {
		run(t, "echo x; exit 1")
		program{file: "/no/such", argv: []string{"x"}}.run(t.Context(), zap.NewNop())
	}
	require.Equal(t, before, count())
}
