// Package metrics tells Prometheus what a scheduler does.
//
// [Metrics] is the scheduler's observer and commit hook. It registers with the registry it is given and
// nothing else, so several schedulers may live in one process:
//
//	m, err := metrics.New(registry, version)
//	…
//	s, err := cronrunner.New(client, cronrunner.Config{Observer: m, CommitHook: m.Committed})
//	…
//	m.WatchElection(func() bool { return s.Elector().Blocked() != "" })
//
// The names are a contract, listed in docs/metrics.md; rules and a dashboard are in deploy.
//
// Series depend on the number of jobs and on small enumerations only: no run id, command or error is
// ever a label.
//
// # Who shows what
//
// Counters and histograms, etcdcron_job_running too, tell what this instance did: sum them over the
// instances. What a job's status says is told by those who know it: consecutive failures, waiting runs,
// incidents that last and the next scheduled time by the leader alone, whose series go when it stops leading; the time of the last success by
// every instance that has seen one, so take the greatest:
//
//	time() - max by (job) (etcdcron_job_last_success_timestamp_seconds) > 90000
package metrics
