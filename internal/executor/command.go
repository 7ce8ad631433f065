package executor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/etcdcron/etcdcron/cronrunner"
)

const (
	// DefaultGrace is how long a command has between SIGTERM and SIGKILL.
	DefaultGrace = 3 * time.Second

	shellPath = "/bin/sh"

	// Linux takes no argument and no variable of 128 KiB or more (MAX_ARG_STRLEN); macOS takes 1 MiB of
	// both in all, the inherited environment included.
	maxString  = 128<<10 - 1
	maxStrings = 512 << 10
)

// Command is a program to run, as it stands in a jobs file. Exactly one of Argv and Shell is set. It
// must not be changed once it is in use; its methods are safe for concurrent use.
type Command struct {
	// Argv is the program and its arguments, taken as they are: no shell, so no pipes and no variables.
	// A program without a slash is looked for in PATH, Env's if it has one; relative entries of PATH are
	// passed over. One with a slash is relative to Dir.
	Argv []string
	// Shell is a line for /bin/sh -c.
	Shell string
	// Dir is the working directory, an absolute path. Default the scheduler's.
	Dir string
	// Env is added to the scheduler's environment, which is handed on without ETCDCRON_* and ETCDCTL_*
	// variables: those may hold etcd's password. Names that begin with ETCDCRON_ are reserved.
	Env map[string]string
	// Grace is the time between SIGTERM and SIGKILL when the command is stopped. Default 3 s. It must not
	// be longer than the job's grace.
	Grace time.Duration
	// User is whom to run as, with the groups that this machine gives that user: a name, or "uid:gid", which has no
	// group beside that one. HOME, USER and LOGNAME are then that user's. Only root can run commands as somebody
	// else. Default the scheduler's user.
	User string
	// PermanentExitCodes, 1 to 255, are those after which trying again is of no use. A command that a signal killed
	// has 128 plus its number.
	PermanentExitCodes []int
}

// Check says what is wrong with the command, every fault at once as a [cronrunner.FieldError]; nil if
// nothing. It does not look for the program or the directory: they may come later, or be elsewhere.
func (c Command) Check() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, &cronrunner.FieldError{Field: field, Err: fmt.Errorf(format, args...)})
	}
	field, words := "command", c.Argv
	if c.Shell != "" {
		field, words = "shell", []string{c.Shell}
	}
	switch {
	case len(c.Argv) > 0 && c.Shell != "":
		fault("command", "both command and shell are set; use one of them")
	case c.Shell != "" && strings.TrimSpace(c.Shell) == "":
		fault("shell", "is blank; say what to run")
	case c.Shell == "" && len(c.Argv) == 0:
		fault("command", "is missing; use command (a program and its arguments), shell (a line for %s) or webhook (an HTTP request)", shellPath)
	case c.Shell == "" && strings.TrimSpace(c.Argv[0]) == "":
		fault("command", "its first item, the program, is empty")
	}
	total := 0
	for _, w := range words {
		total += len(w)
		switch {
		case strings.ContainsRune(w, 0):
			fault(field, "%.40q has a NUL byte, which no argument can have", w)
		case len(w) > maxString:
			fault(field, "an argument of %d bytes is too long; at most %d: put it in a file", len(w), maxString)
		}
	}
	for name, value := range c.Env {
		total += len(name) + len(value)
		if err := checkVariable(name, value); err != nil {
			fault("environment", "%w", err)
		}
	}
	if total > maxStrings {
		fault(field, "arguments and environment are %d bytes; at most %d: put them in a file", total, maxStrings)
	}
	switch {
	case strings.ContainsRune(c.Dir, 0):
		fault("dir", "%.40q has a NUL byte", c.Dir)
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		fault("dir", "%q is relative; use an absolute path", c.Dir)
	}
	if c.Grace < 0 {
		fault("grace", "%s is negative", c.Grace)
	}
	if err := checkUser(c.User); c.User != "" && err != nil {
		fault("user", "%w", err)
	}
	for _, code := range c.PermanentExitCodes {
		if code < 1 || code > 255 {
			fault("permanent_exit_codes", "%d is not between 1 and 255", code)
		}
	}
	if faults == nil {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // Env is a map
	return fmt.Errorf("%w: %w", ErrBadCommand, errors.Join(faults...))
}

func checkVariable(name, value string) error {
	switch {
	case name == "":
		return errors.New("a variable has no name")
	case strings.HasPrefix(name, ownPrefix):
		return fmt.Errorf("%q: names that begin with %s are reserved", name, ownPrefix)
	case strings.Contains(name, "="), strings.ContainsFunc(name, unicode.IsSpace), strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q is not a variable's name", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%q has a NUL byte, which no variable can have", name)
	case len(name)+len(value)+1 > maxString:
		return fmt.Errorf("%q: a value of %d bytes is too long; at most %d: put it in a file", name, len(value), maxString)
	default:
		return nil
	}
}

// grace is Grace with its default.
func (c Command) grace() time.Duration {
	if c.Grace == 0 {
		return DefaultGrace
	}
	return c.Grace
}
