package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// checkDir says why dir cannot be a command's working directory. The kernel's own answer would not tell
// it from a missing program.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s does not exist", ErrBadDir, dir)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadDir, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a directory", ErrBadDir, dir)
	case !executable(dir):
		return fmt.Errorf("%w: %s may not be entered by this user", ErrBadDir, dir)
	default:
		return nil
	}
}

// lookup finds the file of a program as execvp(3) does, in the command's own PATH and from its own
// directory; os/exec would look in the scheduler's. An entry of PATH that depends on the working
// directory is passed over: what runs must not depend on where the scheduler was started.
func lookup(program, dir, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, checkProgram(inDir(dir, program))
	}
	var found error
	for _, entry := range filepath.SplitList(path) {
		if !filepath.IsAbs(entry) {
			continue
		}
		file := filepath.Join(entry, program)
		err := checkProgram(file)
		if err == nil {
			return file, nil
		}
		if found == nil && !errors.Is(err, ErrNotFound) {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", fmt.Errorf("%w: %q is not in PATH %q; give its full path, or use shell for a line of shell", ErrNotFound, program, path)
}

func executable(file string) bool {
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) == nil
}

func inDir(dir, program string) string {
	if filepath.IsAbs(program) {
		return program
	}
	return filepath.Join(dir, program)
}

func checkProgram(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s does not exist", ErrNotFound, file)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case info.IsDir():
		return fmt.Errorf("%w: %s is a directory", ErrNotExecutable, file)
	case !executable(file):
		return fmt.Errorf("%w: %s may not be executed: not by this user (chmod +x may help), or its file system is mounted noexec", ErrNotExecutable, file)
	default:
		return nil
	}
}
