package executor

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/etcdcron/etcdcron/state"
)

func TestLinesGoToTheLog(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	err := Command{Shell: `printf 'one\r\ntwo\n'; printf '\033[2J\t{"job":"other"}\n\nlast' >&2; exit 1`}.do(t.Context(), &fakeRun{}, zap.New(core), nil)
	require.Error(t, err)
	got := map[string][]string{}
	for _, e := range logs.All() {
		require.Equal(t, zapcore.InfoLevel, e.Level)
		fields := e.ContextMap()
		require.Equal(t, "billing", fields["job"])
		require.Equal(t, "20261130T010000Z", fields["run"])
		stream := fields["stream"].(string)
		got[stream] = append(got[stream], e.Message)
	}
	require.Equal(t, map[string][]string{
		"stdout": {"one", "two"},
		"stderr": {"\ufffd[2J {\"job\":\"other\"}", "", "last"},
	}, got)
}

func TestFloodIsBounded(t *testing.T) {
	t.Parallel()
	const size = 200_000_000
	for name, shell := range map[string]string{
		"one endless line": fmt.Sprintf("head -c %d /dev/zero", size),
		"many short lines": fmt.Sprintf("yes | head -c %d", size),
		"noise":            fmt.Sprintf("head -c %d /dev/urandom", size/4),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.InfoLevel)
			res := start(t.Context(), Command{Shell: shell}, zap.New(core))
			require.NoError(t, res.err)
			total := size
			if name == "noise" {
				total /= 4
			}
			require.True(t, strings.HasPrefix(res.output, fmt.Sprintf("[cut: the end of %d bytes]\n", total)), "%.60q", res.output)
			require.LessOrEqual(t, len(res.output), state.MaxOutput)
			require.Equal(t, res.output, state.CutTail(res.output, state.MaxOutput), "the record takes it as it is")
			require.Less(t, logs.Len(), 20*lineBurst)
			if name == "many short lines" {
				logged := 0
				for _, e := range logs.All() {
					if lines, ok := e.ContextMap()["lines"]; ok {
						logged += int(lines.(int64))
					} else {
						logged++
					}
				}
				require.Equal(t, size/2, logged, "each line was logged or counted")
			}
		})
	}
}

// stuckCore is a log that stands still until it is released.
type stuckCore struct {
	zapcore.Core
	release chan struct{}
	writes  *atomic.Int64
}

func newStuckCore() stuckCore {
	return stuckCore{zapcore.NewNopCore(), make(chan struct{}), new(atomic.Int64)}
}

func (c stuckCore) Enabled(zapcore.Level) bool { return true }

func (c stuckCore) With([]zapcore.Field) zapcore.Core { return c }

func (c stuckCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

func (c stuckCore) Write(zapcore.Entry, []zapcore.Field) error {
	c.writes.Add(1)
	<-c.release
	return nil
}

func TestStuckLogDoesNotStopTheCommand(t *testing.T) {
	t.Parallel()
	log := newStuckCore()
	defer close(log.release)
	begun := time.Now()
	res := start(t.Context(), Command{Shell: "seq 100000"}, zap.New(log))
	require.NoError(t, res.err)
	require.True(t, strings.HasSuffix(res.output, "\n99999\n100000\n"))
	require.Less(t, time.Since(begun), patience)
}

func TestStuckLogGetsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	log := newStuckCore()
	l := newLineLog(zap.New(log))
	for range 10 {
		require.True(t, l.line("stdout", []byte("x")))
	}
	l.close(time.Millisecond)
	close(log.release)
	<-l.done
	require.LessOrEqual(t, log.writes.Load(), int64(1))
}

func TestOutputOfNoText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\ufffdb\ufffd[31m世\tc\n10%\n20%\n",
		run(t, `printf 'a\377\376b\000\033\200'; printf '\033[31m世\tc\n10%%\r20%%\r\n'`).output)
}

func TestOutputOfAStoppedCommand(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	res, _ := stopped(t, m, longGrace, `trap "echo bye; exit" TERM; echo hello; touch ready; while :; do sleep 0.01; done`)
	require.Contains(t, res.output, "hello\n")
	require.Contains(t, res.output, "bye\n")
}

// A command that prints nothing must not cost a look at every process.
func BenchmarkCommand(b *testing.B) {
	for b.Loop() {
		res := program{file: "/bin/true", argv: []string{"true"}, env: []string{}}.run(b.Context(), zap.NewNop())
		require.NoError(b, res.err)
	}
}

// For comparison: what os/exec alone takes.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		require.NoError(b, exec.Command("/bin/true").Run())
	}
}

func TestBucket(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := bucket{tokens: lineBurst}
	taken := func() (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	require.Equal(t, lineBurst, taken())
	now = now.Add(time.Second)
	require.Equal(t, lineRate, taken())
	now = now.Add(time.Hour)
	require.Equal(t, lineBurst, taken(), "no more than a burst is saved up")
	now = now.Add(-time.Hour)
	require.Zero(t, taken(), "nor owed when the clock is set back")
}
