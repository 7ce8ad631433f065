package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/etcdcron/etcdcron/internal/executor"
)

// maxAnswered bounds what is read of an answer, in bytes: more than a checkpoint can have.
const maxAnswered = 1 << 20

// tell speaks to the instance that runs the command around us, and returns what it answers to GET. It waits as
// long as the instance does: what is acknowledged is durable.
func (o *options) tell(ctx context.Context, method, what, body string) (string, error) {
	path := o.getenv(executor.SocketVariable)
	if path == "" {
		return "", &failure{
			code: exitBadInput, err: fmt.Errorf("there is no run to speak of: %s is not set", executor.SocketVariable),
			try: "call it from a command that etcdcron serve runs; if it was, the log of that instance says why there is no socket",
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://run"+what, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if inner := errors.Unwrap(err); inner != nil { // without the URL, which is not a real one
			err = inner
		}
		return "", &failure{
			code: exitNoConnection, err: fmt.Errorf("no answer on %s: %s", path, err.Error()), // not a file that somebody named
			try: "is the run over? what it leaves running in the background has no socket any more",
		}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswered))
	if err != nil {
		return "", fmt.Errorf("the answer on %s broke off: %w", path, err)
	}
	if resp.StatusCode/100 == 2 {
		return string(text), nil
	}
	f := &failure{code: codeOf(resp.StatusCode), err: errors.New(strings.TrimSpace(string(text)))}
	if f.code == exitNoConnection {
		f.try = "again"
	}
	return "", f
}

func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return exitBadInput
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusServiceUnavailable:
		return exitNoConnection
	default:
		return exitFailed
	}
}
