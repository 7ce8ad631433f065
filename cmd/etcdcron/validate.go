package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newValidateCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a jobs file: every fault at once, with its line",
		Long: `Check a jobs file, without an etcd: every fault at once, with its line. What
is right is listed, with the time at which it fires next.

Exit codes: 0 valid, 3 not valid, or not to be read.`,
		Example: "  etcdcron validate jobs.yaml && etcdcron serve -c jobs.yaml",
		Args:    exactly(1, "a jobs file"),
		RunE:    func(_ *cobra.Command, args []string) error { return o.validate(args[0]) },
	}
}

// validJob is a job of a file that was found right.
type validJob struct {
	Name     string     `json:"name"`
	Schedule string     `json:"schedule"`
	TimeZone string     `json:"time_zone"`
	Next     *time.Time `json:"next"`
}

func (o *options) validate(path string) error {
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	now := o.now()
	jobs := make([]validJob, len(file.Jobs))
	for i := range file.Jobs {
		job := &file.Jobs[i].Job
		schedule, err := cronrunner.ParseSchedule(job.Schedule, job.TimeZone)
		if err != nil {
			return err // cannot be: Load has checked it
		}
		jobs[i] = validJob{Name: job.Name, Schedule: schedule.String(), TimeZone: schedule.Zone()}
		due, err := job.DueTimes()
		if err != nil {
			return err // likewise
		}
		if next := inspect.Times(due, now, 1); len(next) > 0 {
			jobs[i].Next = &next[0]
		}
	}
	return list(o, jobs, func() *term.Table {
		verb := "are"
		if len(jobs) == 1 {
			verb = "is"
		}
		fmt.Fprintf(o.stdout, "%s: %s %s valid\n\n", term.Clean(path), count(len(jobs), "job"), verb)
		return validTable(jobs, now)
	})
}

func validTable(jobs []validJob, now time.Time) *term.Table {
	table := term.NewTable("NAME", "SCHEDULE", "ZONE", "NEXT", "WHEN")
	for _, j := range jobs {
		next, relative := "", ""
		if zone, err := time.LoadLocation(j.TimeZone); err == nil && j.Next != nil {
			next, relative = local(*j.Next, zone), term.Relative(*j.Next, now)
		}
		table.Row(j.Name, j.Schedule, j.TimeZone, next, relative)
	}
	return table
}
