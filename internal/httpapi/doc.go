// Package httpapi is what an instance answers over HTTP.
//
//	GET  /livez                                    is the process alive?   always 200; not a word of etcd or leadership
//	GET  /readyz                                   can it do its work?     200, or 503 with a reason and what to do
//	GET  /metrics                                  for Prometheus
//	GET  /v1/jobs, /v1/jobs/{job}, …               what there is; openapi.yaml says all of it
//	POST /v1/jobs/{job}/trigger, …                 ask for something
//	GET  /v1/events                                what changes, as it does
//	GET  /, /jobs/{job}, /cluster, …               the same for people: the pages of package web
//
// Every instance answers all of it, leading or not: what is asked about is read from etcd (package inspect), and what
// is asked for is written there (package steer), for whoever leads. A follower is as ready as the leader: it takes
// over when it has to. An etcd that does not answer makes an instance not ready, never not alive: restarting it would
// mend nothing and stop what runs.
//
// # Who may do what
//
// Without any [Access] everybody may do everything who can connect, so whoever wires this listens on loopback then. A
// browser of this machine can connect too, on behalf of any page that it shows: a change that comes from a page of
// another origin is refused, and so is a request for a host that is no name of this machine (a page whose own name
// was made to lead here). No answer has CORS headers.
//
// # What it may cost
//
// Serving must not hurt scheduling. So connections, the requests that talk to etcd at once, the bytes of headers,
// bodies and answers, the clients of /v1/events and what waits for each of them are bounded, and every wait has an
// end. What is beyond a bound is refused with 503 and Retry-After.
package httpapi
