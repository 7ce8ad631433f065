package httpapi

import (
	"context"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

func showLeader(ctx context.Context, c *call) (any, error) {
	if err := queryOf(c).end(); err != nil {
		return nil, err
	}
	return inspect.Leader(ctx, c.etcd.client, c.etcd.store.Keys())
}

// instanceList is who takes part.
type instanceList struct {
	Instances []inspect.Instance `json:"instances"`
}

func listInstances(ctx context.Context, c *call) (any, error) {
	if err := queryOf(c).end(); err != nil {
		return nil, err
	}
	all, err := inspect.Instances(ctx, c.etcd.client, c.etcd.store)
	return instanceList{Instances: all}, err
}

// How many requests an answer has.
const (
	someRequests = 100
	mostRequests = 1000
)

// requestPage is a part of what was asked for and not acted on yet.
type requestPage struct {
	Requests []state.Request `json:"requests"`
	Next     string          `json:"next"` // the cursor of the next part; "" at the end
}

func listRequests(ctx context.Context, c *call) (any, error) {
	q := queryOf(c)
	limit, after := q.number("limit", someRequests, mostRequests), q.text("cursor")
	if err := q.end(); err != nil {
		return nil, err
	}
	some, next, err := c.etcd.store.RequestsAfter(ctx, after, limit)
	page := requestPage{Requests: make([]state.Request, len(some)), Next: next}
	for i := range some {
		page.Requests[i] = some[i].Request
	}
	return page, err
}
