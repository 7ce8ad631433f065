package httpapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/etcdcron/etcdcron/internal/inspect"
)

// How many jobs an answer has.
const (
	someJobs = 100
	mostJobs = 1000
)

// jobPage is a part of the jobs, by name.
type jobPage struct {
	Jobs []inspect.Job `json:"jobs"`
	Next string        `json:"next"` // the cursor of the next part; "" at the end
}

func listJobs(ctx context.Context, c *call) (any, error) {
	q := queryOf(c)
	limit, after := q.number("limit", someJobs, mostJobs), q.text("cursor")
	f := inspect.JobFilter{
		Name: q.text("q"), Paused: q.flag("paused"), Running: q.flag("running"), Failing: q.flag("failing"), Labels: q.labels("label"),
	}
	if all := q.flag("all"); all != nil {
		f.Retired = *all
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	jobs, next, err := inspect.Jobs(ctx, c.etcd.store, after, limit, f, c.now)
	return jobPage{Jobs: jobs, Next: next}, err
}

// labels are name=value, given once for each.
func (q *query) labels(name string) map[string]string {
	labels := make(map[string]string)
	for _, value := range q.all(name) {
		label, value, ok := strings.Cut(value, "=")
		if !ok {
			q.fail(fmt.Errorf("%s=%s: write a name and its value, as in %s=team=billing", name, label, name))
		}
		labels[label] = value
	}
	return labels
}

func showJob(ctx context.Context, c *call) (any, error) {
	job, err := c.job()
	if err == nil {
		err = queryOf(c).end()
	}
	if err != nil {
		return nil, err
	}
	return inspect.Describe(ctx, c.etcd.store, job, c.now)
}
