package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// The exit codes. They are a contract with scripts.
const (
	exitOK           = 0
	exitFailed       = 1
	exitNoConnection = 2
	exitBadInput     = 3
	exitNotFound     = 4
	exitRunFailed    = 5 // the job's run did not succeed
	exitUsage        = 128
)

// failure is an error of the command line alone: with what to try, and the exit code unless the error itself has
// one. What is wrong with a job, a run or what was asked of them is a [fault.Error].
type failure struct {
	err  error
	code int
	try  string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	f, coded := errors.AsType[*failure](err)
	told := fault.Of(err)
	_, faulty := errors.AsType[config.FaultErrors](err)
	switch {
	case err == nil:
		return exitOK
	case coded && f.code != 0:
		return f.code
	case told != nil:
		return exitCodeOf(told.Kind)
	case errors.Is(err, app.ErrNoConnection), state.Unreachable(err):
		return exitNoConnection
	case errors.Is(err, app.ErrBadInput), faulty, errors.Is(err, state.ErrBadName), errors.Is(err, state.ErrBadRequest):
		return exitBadInput
	case errors.Is(err, state.ErrNotFound):
		return exitNotFound
	default:
		return exitFailed
	}
}

// exitCodeOf is the exit code of a kind of fault.
func exitCodeOf(kind fault.Kind) int {
	switch kind {
	case fault.BadInput:
		return exitBadInput
	case fault.NotFound, fault.NotLeading:
		return exitNotFound
	case fault.NoConnection, fault.UnknownOutcome, fault.Unavailable:
		return exitNoConnection
	case fault.Paused, fault.Retired, fault.Invalid, fault.RunOver, fault.RunNotOver, fault.Interrupted:
	}
	return exitFailed
}

// report tells a person what went wrong and what to try, and returns the exit code.
func (o *options) report(err error) int {
	code := exitCode(err)
	if code == exitOK {
		return code
	}
	screen := o.screen(o.stderr)
	message, try := err.Error(), ""
	if errors.Is(err, context.Canceled) {
		message = "interrupted"
	}
	if f, ok := errors.AsType[*failure](err); ok {
		try = f.try
	} else if told := fault.Of(err); told != nil {
		try = told.Hint
	}
	if faults, ok := errors.AsType[config.FaultErrors](err); ok && faults[0].Line > 0 {
		for _, fault := range faults { // as compilers do, so that editors find the place
			fmt.Fprintln(o.stderr, term.Clean(fault.Error()))
		}
		message = fmt.Sprintf("%s has %s", faults[0].File, count(len(faults), "fault"))
		try = "mend what is named above; etcdcron validate " + faults[0].File + " looks again"
	}
	if errors.Is(err, fs.ErrNotExist) {
		if dir, dirErr := os.Getwd(); dirErr == nil {
			try = "another path; this one is looked up from " + dir
		}
	}
	if try == "" && code == exitNoConnection && !errors.Is(err, app.ErrNoConnection) {
		try = "look at etcd with: etcdctl endpoint status --cluster; a longer --command-timeout helps if it is slow"
	}
	lines := strings.Split(message, "\n")
	fmt.Fprintln(o.stderr, screen.Paint(term.Bad, "error:"), term.Clean(lines[0]))
	for _, line := range lines[1:] {
		fmt.Fprintln(o.stderr, "      ", term.Clean(line))
	}
	if try != "" {
		fmt.Fprintln(o.stderr, screen.Paint(term.Heading, "try:"), term.Clean(try))
	}
	return code
}

// hintf tells a person who reads a table what the table does not say.
func (o *options) hintf(format string, args ...any) {
	if o.forPeople() {
		fmt.Fprintln(o.stderr, term.Clean(fmt.Sprintf(format, args...)))
	}
}

// forPeople reports whether the output is a text, and not JSON.
func (o *options) forPeople() bool { return o.output.value == asTable || o.output.value == asWide }

// usage is a command line that cannot be read.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &failure{
		code: exitUsage, err: fmt.Errorf(format, args...),
		try: cmd.CommandPath() + " --help",
	}
}

// exactly takes n arguments; what says which.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == n:
			return nil
		case n == 0:
			return usage(cmd, "%s takes no arguments, but there is %q", cmd.CommandPath(), args[0])
		case len(args) < n:
			return usage(cmd, "%s needs %s", cmd.CommandPath(), what)
		default:
			return usage(cmd, "%s takes %s and nothing else, but there are %d arguments", cmd.CommandPath(), what, len(args))
		}
	}
}

// aJob takes one argument, which can be a job's name.
func aJob(cmd *cobra.Command, args []string) error {
	if err := exactly(1, "the name of a job")(cmd, args); err != nil {
		return err
	}
	return state.CheckJobName(args[0])
}

// perhapsAJob takes a job's name, or nothing.
func perhapsAJob(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return aJob(cmd, args)
}

// aJobAndRun takes two arguments, which can be a job's name and the id of one of its runs.
func aJobAndRun(cmd *cobra.Command, args []string) error {
	if err := exactly(2, "the name of a job and the id of a run")(cmd, args); err != nil {
		return err
	}
	if err := state.CheckJobName(args[0]); err != nil {
		return err
	}
	return inspect.CheckRunID(args[0], args[1])
}

// aJobAndPerhapsRun is aJobAndRun, but the run may be left out.
func aJobAndPerhapsRun(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return aJobAndRun(cmd, args)
	}
	if len(args) > 2 {
		return usage(cmd, "%s takes the name of a job, the id of a run and nothing else, but there are %d arguments", cmd.CommandPath(), len(args))
	}
	return aJob(cmd, args)
}

// knownCommand is the root's check of its arguments: cobra gives it those that are no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := make(map[string]bool)
	for _, c := range cmd.Commands() {
		names[c.Name()] = c.IsAvailableCommand()
	}
	maps.DeleteFunc(names, func(_ string, available bool) bool { return !available })
	err := &failure{code: exitUsage, err: fmt.Errorf("there is no command %q", args[0]), try: "etcdcron --help"}
	if c := term.Closest(args[0], slices.Values(slices.Sorted(maps.Keys(names)))); c != "" {
		err.try = "did you mean " + c + "? etcdcron --help lists the commands"
	}
	return err
}

// badFlag is a flag that is not known, or whose value is not.
func badFlag(cmd *cobra.Command, err error) error {
	f := &failure{code: exitUsage, err: err, try: cmd.CommandPath() + " --help"}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f.err = fmt.Errorf("%s %q: %w", spelling(invalid.GetFlag()), invalid.GetValue(), cause(err))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
		if c := term.Closest(unknown.GetSpecifiedName(), slices.Values(known)); c != "" {
			f.try = "did you mean --" + c + "? " + f.try + " lists the flags"
		}
	}
	return f
}

// errNotAllowed is the value of a flag that takes one of a few words.
func errNotAllowed(allowed []string) error {
	last := len(allowed) - 1
	return fmt.Errorf("use %s or %s", strings.Join(allowed[:last], ", "), allowed[last])
}

// cause is what is wrong with a flag's value, in place of what Go and pflag say of it.
func cause(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	switch invalid.GetFlag().Value.Type() {
	case "int":
		return errors.New("use a whole number")
	case "bool":
		return errors.New("use true or false")
	case "duration":
		return errors.New("write a length of time with its unit, such as 5s or 1m30s")
	case "stringSlice":
		return errors.New("separate the parts by commas")
	default: // our own flags say it well
		return invalid.Unwrap()
	}
}

// spelling is how a flag is mostly written.
func spelling(flag *pflag.Flag) string {
	if flag.Shorthand != "" {
		return "-" + flag.Shorthand
	}
	return "--" + flag.Name
}

// count is "1 fault", "2 faults".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
