package executor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// diagnose says why file, which is there and executable, was not started. The kernel has few words: it
// says "no such file" of a script's interpreter as of the script.
func diagnose(file string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		first, _ := shebang(file)
		switch {
		case strings.HasSuffix(first, "\r"):
			return fmt.Errorf("%w: %s has CRLF line ends, so its interpreter is taken as %q; %s", ErrBadInterpreter, file, first, fixCRLF)
		case first != "":
			return fmt.Errorf("%w: %s asks for %q, which does not exist", ErrBadInterpreter, file, first)
		default:
			return fmt.Errorf("%w: %s is there, but its dynamic loader is not; was it built for another system?", ErrBadInterpreter, file)
		}
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%w: %s is neither a program for this machine nor a script with a #! line", ErrNotExecutable, file)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %s, its interpreter or its file system forbids it: %w", ErrNotExecutable, file, err)
	default:
		return fmt.Errorf("cannot start %s: %w", file, err)
	}
}

const fixCRLF = "convert the script, for instance with dos2unix"

// shebang is the interpreter that a script's first line asks for, with the carriage return that CRLF
// line ends leave there; "" if the file is no script.
func shebang(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		return strings.Trim(rest, " \t\n"), nil
	}
	return "", err
}

// hint says what an exit code that a shell or env(1) uses for its own troubles may mean.
func hint(code int, shell bool, file string) string {
	if code != 126 && code != 127 {
		return ""
	}
	if first, _ := shebang(file); strings.HasSuffix(first, "\r") {
		return "the script has CRLF line ends; " + fixCRLF
	}
	switch {
	case !shell:
		return ""
	case code == 127:
		return "the shell did not find a command"
	default:
		return "the shell could not execute a command"
	}
}
