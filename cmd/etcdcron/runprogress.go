package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newProgressCommand(o *options) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "progress DONE[/TOTAL]",
		Short: "Inside a command: say how far the run is",
		Long: `progress is for a command that etcdcron runs. It says how far the run is,
for people: etcdcron describe shows it. It ends when the instance has taken
it; at most one a second is written to etcd, and the last always is, with
the run's end.

Exit codes: 0 taken, 1 the run is over, 2 no answer, 3 not inside a run, 128
usage.`,
		Example: `  etcdcron progress 5/10
  etcdcron progress 1200 --message "invoices sent"`,
		Args: exactly(1, "how much is done, as in 5/10 or 5"),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, total, err := parseProgress(args[0])
			if err != nil {
				return usage(cmd, "%w", err)
			}
			body, err := json.Marshal(map[string]any{"done": done, "total": total, "message": message})
			if err != nil {
				return err
			}
			_, err = o.tell(cmd.Context(), http.MethodPost, "/progress", string(body))
			return err
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "`text` beside it, at most 1 KiB")
	return cmd
}

// parseProgress reads DONE or DONE/TOTAL; total is 0 when it is not known.
func parseProgress(text string) (done, total int64, err error) {
	doneText, totalText, both := strings.Cut(text, "/")
	done, err = strconv.ParseInt(doneText, 10, 64)
	if err == nil && both {
		total, err = strconv.ParseInt(totalText, 10, 64)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, 0, fmt.Errorf("%q is too large", text)
	case err != nil, done < 0, total < 0, both && total == 0:
		return 0, 0, fmt.Errorf("%q is not how much is done; write it as in 5/10 or 5", text)
	}
	return done, total, nil
}
