package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdcron/etcdcron/test/chaos/workload"
)

// command is one attempt of a job that runs commands.
func command(ctx context.Context) error {
	p, err := place("file")
	if err != nil {
		return err
	}
	defer p.History.Close()
	defer p.History.Watch(context.Background(), p.Instance)()
	end, err := endOfTimes()
	if err != nil {
		return err
	}
	run := ofCommand{job: os.Getenv("ETCDCRON_JOB"), id: os.Getenv("ETCDCRON_RUN_ID")}
	if run.attempt, err = strconv.Atoi(os.Getenv("ETCDCRON_ATTEMPT")); err != nil {
		return err
	}
	if run.token, err = strconv.ParseInt(os.Getenv("ETCDCRON_FENCING_TOKEN"), 10, 64); err != nil {
		return err
	}
	jobs := workload.File(end)
	i := slices.IndexFunc(jobs, func(j workload.Job) bool { return j.Name == run.job })
	if i < 0 {
		return fmt.Errorf("there is no job %q", run.job)
	}
	return p.Do(ctx, jobs[i].Work, run)
}

// ofCommand is an attempt that is a command.
type ofCommand struct {
	job, id string
	attempt int
	token   int64
}

func (r ofCommand) Job() string         { return r.job }
func (r ofCommand) ID() string          { return r.id }
func (r ofCommand) Attempt() int        { return r.attempt }
func (r ofCommand) FencingToken() int64 { return r.token }

func (r ofCommand) Restored(context.Context) (int64, error) {
	text := os.Getenv("ETCDCRON_CHECKPOINT")
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

func (r ofCommand) Save(ctx context.Context, value int64) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", os.Getenv("ETCDCRON_SOCKET"))
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://run/checkpoint", strings.NewReader(strconv.FormatInt(value, 10)))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("not saved: %s", resp.Status)
	}
	return nil
}
