package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// Completion of what only etcd knows. A shell waits for it at each press of Tab, so it takes a moment and no longer,
// and says nothing when it fails: what it prints would stand in the middle of the command line.
const (
	completionTimeout = time.Second
	completedRuns     = 20
)

// completeJob completes the name of a job, as the first argument.
func (o *options) completeJob(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.complete(cmd, word, func(ctx context.Context, store *state.Store) ([]string, error) { return store.JobNames(ctx) })
}

// completeRun completes the name of a job and the id of one of its newest runs.
func (o *options) completeRun(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return o.completeJob(cmd, args, word)
	}
	words, directive := o.complete(cmd, word, func(ctx context.Context, store *state.Store) ([]string, error) {
		page, err := store.History(ctx, args[0], "", completedRuns)
		words := make([]string, len(page.Runs))
		for i := range page.Runs {
			r := &page.Runs[i]
			words[i] = r.ID + "\t" + string(r.Status) + ", " + term.Relative(r.ScheduledAt, o.now())
		}
		return words, err
	})
	return words, directive | cobra.ShellCompDirectiveKeepOrder // the newest first
}

// complete are the words that read finds and that begin with word.
func (o *options) complete(
	cmd *cobra.Command, word string, read func(context.Context, *state.Store) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	if err := fromEnvironment(cmd.Flags(), o.getenv); err != nil {
		return nil, nothing
	}
	keys, err := state.NewKeys(o.prefix, o.namespace)
	if err != nil {
		return nil, nothing
	}
	conf := o.clientConfig()
	conf.DialTimeout, conf.CommandTimeout, conf.Logger = completionTimeout, completionTimeout, nil
	client, err := app.Connect(ctx, conf)
	if err != nil {
		return nil, nothing
	}
	defer client.Close()
	words, err := read(ctx, state.NewStore(client, keys, state.StoreConfig{Timeout: completionTimeout}))
	if err != nil {
		return nil, nothing
	}
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, word) }), nothing
}

// completeFlags completes the flags that take one of a few words.
func (o *options) completeFlags(root *cobra.Command) {
	for name, words := range map[string][]string{
		"output": o.output.allowed, "time-format": o.timeFormat.allowed, "log-level": o.logLevel.allowed, "log-format": o.logFormat.allowed,
	} {
		if err := root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // no such flag: our own mistake, seen by every test
		}
	}
}
