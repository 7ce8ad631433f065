package app

import (
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/executor"
)

// stopSlack is what a command may take beyond its own grace until its handler has returned.
const stopSlack = 200 * time.Millisecond

// loadJobs reads the jobs file and makes handlers of its commands and webhooks.
func loadJobs(path string, handlers *executor.Executor) ([]cronrunner.Job, error) {
	if path == "" {
		return nil, badInput("there is nothing to run: give a jobs file with -c FILE")
	}
	file, err := config.Load(path)
	if err != nil {
		return nil, badInput("%w", err)
	}
	jobs := make([]cronrunner.Job, len(file.Jobs))
	for i, spec := range file.Jobs {
		jobs[i] = spec.Job
		if spec.Notify != nil {
			jobs[i].Alert.Notify = handlers.Notify(*spec.Notify)
		}
		if spec.Webhook != nil {
			jobs[i].Handler = handlers.Webhook(*spec.Webhook)
			continue
		}
		command := spec.Command
		command.Grace = commandGrace(spec.Job)
		if err := command.Check(); err != nil {
			return nil, badInput("%s:%d: job %s: %w", path, spec.Line, spec.Job.Name, err)
		}
		jobs[i].Handler = handlers.Command(command)
	}
	return jobs, nil
}

// commandGrace is how long a command has between SIGTERM and SIGKILL, so that its handler returns within
// the job's grace.
func commandGrace(j cronrunner.Job) time.Duration {
	grace := j.WithDefaults().Grace
	return max(grace-stopSlack, grace/2)
}
