package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

func newTriggerCommand(o *options) *cobra.Command {
	var n note
	var args argsFlag
	var follow bool
	cmd := &cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now",
		Long: `Run a job now, beside its schedule. If it still runs, its overlap policy
decides: the run waits, takes the place of what runs, or is skipped.
A command gets --arg name=value as the variable ETCDCRON_ARG_name.

It returns as soon as the leader has acted on it. With --follow it waits
until the run is over, and shows the end of what it has printed. Ctrl-C ends
the following, not the run.

Exit codes: 0 asked for (with --follow: succeeded), 1 skipped, or the job is
paused, 4 no such job, 5 with --follow: the run did not succeed.`,
		Example: `  etcdcron trigger daily_billing --follow
  etcdcron trigger daily_billing --arg month=2026-11 --reason "November again"`,
		Args:              aJob,
		ValidArgsFunction: o.completeJob,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error {
				return c.start(ctx, follow, func(ctx context.Context) (state.Request, error) {
					return steer.Trigger(ctx, c.store, names[0], args, n.asked(), o.now())
				})
			})
		},
	}
	cmd.Flags().Var(&args, "arg", "argument for the run, `name=value`; may be given more than once")
	addFollow(cmd, &follow)
	n.addFlags(cmd.Flags())
	return cmd
}

func addFollow(cmd *cobra.Command, follow *bool) {
	cmd.Flags().BoolVarP(follow, "follow", "f", false, "wait until it is over, and show how it ended")
}

// argsFlag is a flag that takes name=value, any number of times.
type argsFlag map[string]string

var argName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (f *argsFlag) String() string {
	parts := make([]string, 0, len(*f))
	for _, name := range slices.Sorted(maps.Keys(*f)) {
		parts = append(parts, name+"="+(*f)[name])
	}
	return strings.Join(parts, ",")
}

func (f *argsFlag) Type() string { return "name=value" }

func (f *argsFlag) Set(arg string) error {
	name, value, ok := strings.Cut(arg, "=")
	switch {
	case !ok:
		return errors.New("write a name and its value, such as month=2026-11")
	case !argName.MatchString(name):
		return fmt.Errorf("the name %q may have only letters, digits and '_', and not begin with a digit", name)
	case !utf8.ValidString(value):
		return fmt.Errorf("the value of %s is not UTF-8", name)
	}
	if _, taken := (*f)[name]; taken {
		return fmt.Errorf("%s is given a second time", name)
	}
	if *f == nil {
		*f = make(argsFlag)
	}
	(*f)[name] = value
	return nil
}
