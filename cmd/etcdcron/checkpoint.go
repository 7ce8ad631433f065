package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/state"
)

func newCheckpointCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint [VALUE|-]",
		Short: "Inside a command: write down from where a later attempt can go on",
		Long: `checkpoint is for a command that etcdcron runs. It writes down VALUE, or
with - what it reads from standard input, and ends with exit code 0 once
that is durable; while etcd is away it waits. The next attempt of the run
finds it in $ETCDCRON_CHECKPOINT, byte for byte. With checkpoint: job in the
jobs file so do the next runs, until one succeeds. It is UTF-8 text of at
most 64 KiB, as JSON.

Without VALUE it prints the last checkpoint, as it is.

Exit codes: 0 durable, 1 the run is not ours any more, 2 no answer, 3 bad
input or not inside a run, 4 there is no checkpoint, 128 usage.`,
		Example: `  for page in $(seq "${ETCDCRON_CHECKPOINT:-1}" 100); do
    charge "$page" && etcdcron checkpoint "$((page + 1))" || exit 1
  done`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "etcdcron checkpoint takes one value, but there are %d arguments; put it in quotes", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				text, err := o.tell(cmd.Context(), http.MethodGet, "/checkpoint", "")
				if err == nil {
					_, err = io.WriteString(o.stdout, text)
				}
				return err
			}
			value := args[0]
			if value == "-" {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), state.MaxCheckpoint+1)) // the answer says that it is too large
				if err != nil {
					return fmt.Errorf("standard input cannot be read: %w", err)
				}
				value = string(text)
			}
			_, err := o.tell(cmd.Context(), http.MethodPost, "/checkpoint", value)
			return err
		},
	}
}
