package term_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"github.com/etcdcron/etcdcron/internal/term"
)

// keyboard is the other end of a terminal: what is typed, and what was shown.
type keyboard struct {
	*os.File

	mu    sync.Mutex
	shown bytes.Buffer
}

func (k *keyboard) screen() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown.String()
}

// newTerminal is a terminal, and who sits at it.
func newTerminal(t *testing.T) (*os.File, *keyboard) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	master := os.NewFile(uintptr(fd), "ptmx") // it can be closed while it is read, since it does not block
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	k := &keyboard{File: master}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			k.mu.Lock()
			k.shown.Write(buf[:n])
			k.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = tty.Close()
		_ = master.Close()
		reading.Wait()
	})
	return tty, k
}

func modes(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return *m
}

func TestScreenOf_Terminal(t *testing.T) {
	t.Parallel()
	tty, _ := newTerminal(t)
	env := map[string]string{"TERM": "xterm"}
	getenv := func(name string) string { return env[name] }
	require.Equal(t, term.Screen{Color: true, Width: 80, Height: 24}, term.ScreenOf(tty, getenv))
	env["NO_COLOR"] = "1"
	require.Equal(t, term.Screen{Width: 80, Height: 24}, term.ScreenOf(tty, getenv))
}

// q, Ctrl-C and the end of its context end a full screen, and the terminal is as it was.
func TestFullScreen(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"q": "q", "Ctrl-C": "\x03", "a signal": "", "another key": "xyq"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tty, keys := newTerminal(t)
			before := modes(t, tty)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			err := term.FullScreen(ctx, tty, tty, func(ctx context.Context, show func([]string) error) error {
				require.NotEqual(t, before, modes(t, tty), "not raw: keys wait for the end of the line")
				require.NoError(t, show([]string{"one", "two"}))
				if key == "" {
					stop()
				} else {
					_, err := keys.WriteString(key)
					require.NoError(t, err)
				}
				<-ctx.Done()
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, before, modes(t, tty))
			require.Eventually(t, func() bool { return strings.HasSuffix(keys.screen(), "\x1b[?25h\x1b[?1049l") }, 10*time.Second, time.Millisecond)
			require.Contains(t, keys.screen(), "\x1b[?1049h\x1b[?25l\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J")
		})
	}
}

// What fails while it is drawn leaves the terminal as it was, too.
func TestFullScreen_Error(t *testing.T) {
	t.Parallel()
	tty, _ := newTerminal(t)
	before, broke := modes(t, tty), errors.New("it broke")
	require.ErrorIs(t, term.FullScreen(t.Context(), tty, tty, func(context.Context, func([]string) error) error { return broke }), broke)
	require.Equal(t, before, modes(t, tty))
}

func TestConfirmed(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "\x04": false} {
		tty, keys := newTerminal(t)
		require.True(t, xterm.IsTerminal(int(tty.Fd())))
		_, err := keys.WriteString(typed)
		require.NoError(t, err)
		got, err := term.Confirmed(t.Context(), tty)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", typed)
	}
	tty, _ := newTerminal(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := term.Confirmed(ctx, tty)
	require.ErrorIs(t, err, context.Canceled)
}
