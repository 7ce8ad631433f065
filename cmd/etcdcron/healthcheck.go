package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/app"
)

// maxHealth bounds what is read of an answer.
const maxHealth = 64 << 10

func newHealthcheckCommand(o *options) *cobra.Command {
	address, live, timeout := app.DefaultListen, false, 3*time.Second
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask an instance whether it is ready, for a container's probe",
		Long: `Ask an instance over HTTP whether it is ready to do its work (/readyz): it
has an etcd that answers. A follower is as ready as the leader. With --live,
ask only whether the process lives (/livez), whatever etcd does. etcd itself
is not asked.

Exit codes: 0 it is, 1 it is not, or does not answer.`,
		Example: `  HEALTHCHECK CMD ["etcdcron", "healthcheck"]
  etcdcron healthcheck --address 127.0.0.1:2390 --live`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.healthcheck(cmd.Context(), address, live, timeout)
		},
	}
	cmd.Flags().StringVar(&address, "address", address, "`address` of the instance's HTTP, or its URL")
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether the process lives")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for the answer")
	bindEnvironment(cmd.Flags(), "address", "ETCDCRON_")
	return cmd
}

// healthAnswer is what /readyz and /livez say.
type healthAnswer struct {
	Status   string `json:"status"`
	Instance string `json:"instance,omitempty"`
	Role     string `json:"role,omitempty"`
	Leader   string `json:"leader,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

func (o *options) healthcheck(ctx context.Context, address string, live bool, timeout time.Duration) error {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return &failure{code: exitBadInput, err: fmt.Errorf("--address %q is no address", address), try: "--address " + app.DefaultListen}
	}
	path := "readyz"
	if live {
		path = "livez"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, code, err := askHealth(ctx, base.JoinPath(path).String())
	if err != nil {
		return &failure{
			code: exitFailed, err: fmt.Errorf("no answer from %s: %w", base.Host, plainly(err)),
			try: "--address names another; etcdcron instances lists them",
		}
	}
	if err := one(o, answer, func() error {
		text := answer.Status
		if answer.Instance != "" {
			text = fmt.Sprintf("%s %s (%s)", answer.Instance, strings.ReplaceAll(answer.Status, "_", " "), answer.Role)
		}
		_, err := fmt.Fprintln(o.stdout, text)
		return err
	}); err != nil || code == http.StatusOK {
		return err
	}
	return &failure{code: exitFailed, err: fmt.Errorf("it is not ready: %s", answer.Reason), try: answer.Hint}
}

func askHealth(ctx context.Context, address string) (answer healthAnswer, code int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return answer, 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is asked on its own machine
	resp, err := client.Do(req)
	if err != nil {
		return answer, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return answer, 0, err
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status == "" {
		return answer, 0, fmt.Errorf("that is no instance of etcdcron: it answers %s", resp.Status)
	}
	return answer, resp.StatusCode, nil
}

// plainly is an error of an HTTP client without what was asked, which the reader knows.
func plainly(err error) error {
	if asked, ok := errors.AsType[*url.Error](err); ok {
		err = asked.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it takes too long")
	}
	return err
}
