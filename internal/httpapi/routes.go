package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4 // at once; each holds all series in memory
)

var errNoEtcd = errors.New("this instance has not reached etcd yet")

// routes is every path there is.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", ready(s.cfg.Health))
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))

	mux.HandleFunc("GET /v1/openapi.yaml", openAPI)
	mux.HandleFunc("GET /v1/jobs", s.read(listJobs))
	mux.HandleFunc("GET /v1/jobs/{job}", s.read(showJob))
	mux.HandleFunc("GET /v1/jobs/{job}/runs", s.read(listRuns))
	mux.HandleFunc("GET /v1/jobs/{job}/runs/{run}", s.read(showRun))
	mux.HandleFunc("GET /v1/requests", s.read(listRequests))
	mux.HandleFunc("GET /v1/leader", s.read(showLeader))
	mux.HandleFunc("GET /v1/instances", s.read(listInstances))
	mux.HandleFunc("GET /v1/events", s.events)

	mux.HandleFunc("POST /v1/jobs/{job}/trigger", s.change(trigger))
	mux.HandleFunc("POST /v1/jobs/{job}/backfill", s.change(backfill))
	mux.HandleFunc("POST /v1/jobs/{job}/pause", s.change(pause))
	mux.HandleFunc("POST /v1/jobs/{job}/resume", s.change(resume))
	mux.HandleFunc("POST /v1/jobs/{job}/runs/{run}/cancel", s.change(cancel))
	mux.HandleFunc("POST /v1/jobs/{job}/runs/{run}/retry", s.change(retry))
	mux.HandleFunc("POST /v1/leader/resign", s.change(resign))
	s.mountPages(mux)
	return mux
}

// Handler is what answers each request: first what holds for all of them, from the outside in.
func (s *Server) Handler() http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		newProblem(http.StatusForbidden, codeForbidden, "a page of another origin may not change anything here",
			"use this server's own page, or a client that is no browser").write(w)
	}))
	return s.crowd.seated(harden(s.guard(origin.Handler(inJSON(s.routes())))))
}

// harden is what holds for every answer.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// inJSON has what the mux says of paths and methods that it does not know said as everything else is.
func inJSON(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := &heard{header: make(http.Header)}
		handler.ServeHTTP(said, r)
		if said.status == http.StatusMethodNotAllowed {
			allow := said.header.Get("Allow")
			w.Header().Set("Allow", allow)
			newProblem(said.status, codeBadMethod, r.Method+" is not for "+r.URL.Path, "use one of: "+allow).write(w)
			return
		}
		newProblem(http.StatusNotFound, codeNoRoute, "there is nothing at "+r.URL.Path, "GET /v1/openapi.yaml lists what there is").write(w)
	})
}

// heard is an answer that is not sent.
type heard struct {
	bytes.Buffer

	header http.Header
	status int
}

func (h *heard) Header() http.Header    { return h.header }
func (h *heard) WriteHeader(status int) { h.status = status }
