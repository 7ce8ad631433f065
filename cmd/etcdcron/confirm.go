package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/etcdcron/etcdcron/internal/term"
)

// consent is whether something may be done that cannot be undone.
type consent struct{ yes, dryRun bool }

func (c *consent) addFlags(f *pflag.FlagSet) {
	f.BoolVarP(&c.yes, "yes", "y", false, "do not ask whether to go on")
	f.BoolVar(&c.dryRun, "dry-run", false, "only say what would be done")
}

// given asks whether to go on, if somebody sits at a terminal: a script has made up its mind.
func (o *options) given(ctx context.Context, c consent, question string) error {
	in, ok := o.stdin.(*os.File)
	if c.yes || !ok || !term.IsTerminal(in) {
		return nil
	}
	fmt.Fprintf(o.stderr, "%s [y/N] ", term.Clean(question))
	switch yes, err := term.Confirmed(ctx, in); {
	case err != nil:
		fmt.Fprintln(o.stderr)
		return err
	case !yes:
		return &failure{err: errors.New("nothing was done"), code: exitFailed, try: "answer y, or give --yes"}
	}
	return nil
}
