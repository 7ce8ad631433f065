// Package httpapi is what an instance answers over HTTP.
//
//	GET /livez     is the process alive?            always 200; not a word of etcd or leadership
//	GET /readyz    can it do its work?              200, or 503 with a reason and what to do
//	GET /metrics   for Prometheus
//
// A follower is as ready as the leader: it takes over when it has to. An etcd that does not answer makes
// an instance not ready, never not alive: restarting it would mend nothing and stop what runs.
package httpapi
