package term

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// What a terminal is told, beside colours.
const (
	// LineStart goes to the beginning of the line and clears it.
	LineStart = "\r\x1b[K"

	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, which does not scroll, and no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// keyPoll is how often it is looked whether keys are still to be waited for.
const keyPoll = 200 * time.Millisecond

// The keys that end a full screen. In raw mode Ctrl-C is a key and no signal.
const (
	ctrlC = 3
	ctrlD = 4
	quit  = 'q'
)

// FullScreen has draw show lines on a terminal of their own, in place of each other, until draw returns; ctx ends when
// the reader presses q or Ctrl-C. keys is where they are read, if that is a terminal. Whatever happens, the terminal is
// left as it was.
func FullScreen(ctx context.Context, keys io.Reader, screen *os.File, draw func(ctx context.Context, show func(lines []string) error) error) error {
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	if in, ok := keys.(*os.File); ok && IsTerminal(in) {
		was, err := xterm.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = xterm.Restore(int(in.Fd()), was) }() // there is nobody left to tell
		reading.Go(func() { untilQuit(ctx, int(in.Fd()), stop) })
	}
	if _, err := screen.WriteString(enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = screen.WriteString(leaveScreen) }()
	return draw(ctx, func(lines []string) error {
		var b bytes.Buffer
		b.WriteString(home)
		// In raw mode a new line does not begin at its first column.
		b.WriteString(strings.Join(lines, clearLine+"\r\n"))
		b.WriteString(clearLine + clearBelow)
		_, err := screen.Write(b.Bytes())
		return err
	})
}

// untilQuit reads keys until one of them ends it. It never waits in a read, which nothing could end.
func untilQuit(ctx context.Context, fd int, stop func()) {
	buf := make([]byte, 16)
	for ctx.Err() == nil {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a file descriptor is small
		n, err := unix.Poll(fds, int(keyPoll.Milliseconds()))
		if err != nil || n == 0 {
			continue // nothing yet, or a signal
		}
		read, err := unix.Read(fd, buf)
		if err != nil || read == 0 || bytes.ContainsAny(buf[:read], string([]rune{ctrlC, ctrlD, quit})) {
			stop()
			return
		}
	}
}
