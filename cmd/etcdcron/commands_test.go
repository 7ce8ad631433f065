package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// noon is when the tests take place: in the past, since history begins ten minutes from now.
var noon = time.Date(2024, 6, 3, 12, 0, 0, 0, time.UTC)

// called is one call of the command.
type called struct {
	code           int
	stdout, stderr string
}

// call runs the command at noon, with nothing in its environment but env.
func call(t *testing.T, env map[string]string, args ...string) called {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, surroundings{
		stdout: &stdout, stderr: &stderr,
		getenv: func(name string) string { return env[name] },
		now:    func() time.Time { return noon },
	})
	return called{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		exitOK:           {nil},
		exitFailed:       {errors.New("x"), leader.ErrNoLeader, context.Canceled, state.ErrBadRecord, &fault.Error{Kind: fault.Paused, Err: context.DeadlineExceeded}},
		exitNoConnection: {app.ErrNoConnection, context.DeadlineExceeded, rpctypes.ErrNoLeader, rpctypes.ErrTimeout, status.Error(codes.Unavailable, "x")},
		exitBadInput:     {app.ErrBadInput, config.FaultErrors{{Err: errors.New("x")}}, state.CheckJobName("a/b"), &failure{err: errors.New("x"), code: exitBadInput}, &fault.Error{Kind: fault.BadInput, Err: errors.New("x")}},
		exitNotFound:     {state.ErrNotFound, &fault.Error{Kind: fault.NotFound, Err: errors.New("x")}},
		exitUsage:        {&failure{err: state.ErrNotFound, code: exitUsage}},
	} {
		for _, err := range errs {
			require.Equal(t, want, exitCode(err), "%v", err)
			if err != nil {
				require.Equal(t, want, exitCode(fmt.Errorf("while looking: %w", err)), "%v", err)
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"plain":       {errors.New("it broke"), "error: it broke\n"},
		"a hint":      {&failure{err: errors.New("it broke"), try: "again"}, "error: it broke\ntry: again\n"},
		"a fault":     {&fault.Error{Kind: fault.Paused, Err: errors.New("it is paused"), Hint: "resume it"}, "error: it is paused\ntry: resume it\n"},
		"more lines":  {errors.New("one\ntwo"), "error: one\n       two\n"},
		"escapes":     {errors.New("\x1b]0;title\a"), "error: \uFFFD]0;title\uFFFD\n"},
		"interrupted": {fmt.Errorf("read: %w", context.Canceled), "error: interrupted\n"},
		"quorum lost": {rpctypes.ErrNoLeader, "error: etcdserver: no leader\n" +
			"try: look at etcd with: etcdctl endpoint status --cluster; a longer --command-timeout helps if it is slow\n"},
		"faults": {fmt.Errorf("load: %w", config.FaultErrors{
			{File: "f", Line: 2, Field: "a.schedule", Err: errors.New("is missing")}, {File: "f", Line: 3, Err: errors.New("x")},
		}), "f:2: a.schedule: is missing\nf:3: x\nerror: f has 2 faults\ntry: mend what is named above; etcdcron validate f looks again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			o := &options{surroundings: surroundings{stderr: &stderr, getenv: func(string) string { return "" }}}
			o.report(tc.err)
			require.Equal(t, tc.want, stderr.String())
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env   map[string]string
		args  []string
		want  []string
		given bool
	}{
		"nothing":          {nil, nil, []string{"127.0.0.1:2379"}, false},
		"empty":            {map[string]string{"ETCDCRON_ENDPOINTS": ""}, nil, []string{"127.0.0.1:2379"}, false},
		"etcdctl's":        {map[string]string{"ETCDCTL_ENDPOINTS": "a:1,b:2"}, nil, []string{"a:1", "b:2"}, true},
		"ours before":      {map[string]string{"ETCDCTL_ENDPOINTS": "a:1", "ETCDCRON_ENDPOINTS": "c:3"}, nil, []string{"c:3"}, true},
		"flag before both": {map[string]string{"ETCDCRON_ENDPOINTS": "c:3"}, []string{"--endpoints=d:4"}, []string{"d:4"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &options{surroundings: surroundings{getenv: func(name string) string { return tc.env[name] }}}
			root := newRootCommand(o)
			require.NoError(t, root.ParseFlags(tc.args))
			require.NoError(t, fromEnvironment(root.Flags(), o.getenv))
			require.Equal(t, tc.want, o.clientConfig().Endpoints)
			require.Equal(t, tc.given, o.endpointsGiven())
		})
	}

	got := call(t, map[string]string{"ETCDCTL_DIAL_TIMEOUT": "soon"}, "version")
	require.Equal(t, called{
		code:   exitBadInput,
		stderr: "error: variable ETCDCTL_DIAL_TIMEOUT is \"soon\": write a length of time with its unit, such as 5s or 1m30s\ntry: unset ETCDCTL_DIAL_TIMEOUT\n",
	}, got)
}

// everyCommand is a command and all below it, but for cobra's own.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.Name() != "completion" && sub.Name() != "help" {
			all = append(all, everyCommand(sub)...)
		}
	}
	return all
}

// Whoever takes the name of a job completes it, and says which may have been meant.
func TestCompletion(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&options{surroundings: surroundings{getenv: func(string) string { return "" }}})
	for _, cmd := range everyCommand(root) {
		if strings.Contains(cmd.Use, "JOB") {
			require.NotNil(t, cmd.ValidArgsFunction, cmd.Use)
		}
	}
}

// Help is read in terminals of 80 columns, and its prose in fewer.
func TestHelp(t *testing.T) {
	t.Parallel()
	root := newRootCommand(&options{surroundings: surroundings{getenv: func(string) string { return "" }}})
	for _, cmd := range everyCommand(root) {
		for line := range strings.Lines(cmd.Long) {
			require.LessOrEqual(t, len(strings.TrimSpace(line)), 76, line)
		}
		got := call(t, nil, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		require.Zero(t, got.code)
		for line := range strings.Lines(got.stdout) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), helpWidth, line)
		}
		if cmd.Name() != "version" {
			require.Contains(t, got.stdout, "Examples:\n")
		}
		require.Equal(t, cmd.Name() != "serve", strings.Contains(got.stdout, "--output"))
		require.NotContains(t, got.stdout, "[127.0.0.1:2379]")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	got := call(t, map[string]string{"ETCDCRON_NAMESPACE": "a/b"}, "jobs")
	require.Equal(t, called{
		code:   exitBadInput,
		stderr: "error: namespace \"a/b\": use letters, digits, '.', '_' and '-'; try \"default\"\n",
	}, got)
}
