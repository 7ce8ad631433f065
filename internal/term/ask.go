package term

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"
)

// IsTerminal reports whether r is a terminal at which somebody may sit.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// Confirmed waits for a line at a terminal, and reports whether it says yes. Whatever is no yes is a no, as is the end
// of the input. Its error is ctx's.
func Confirmed(ctx context.Context, in *os.File) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}} //nolint:gosec // a file descriptor is small
	for ctx.Err() == nil {
		if n, err := unix.Poll(fds, int(keyPoll.Milliseconds())); err != nil || n == 0 {
			continue // nothing yet, or a signal
		}
		line, err := bufio.NewReader(in).ReadString('\n')
		answer := strings.ToLower(strings.TrimSpace(line))
		return err == nil && (answer == "y" || answer == "yes"), nil
	}
	return false, context.Cause(ctx)
}
