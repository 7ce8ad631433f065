package metrics_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/cronrunner/metrics"
	"github.com/etcdcron/etcdcron/state"
)

// BenchmarkScrape is a scrape of the leader of 10,000 jobs, each of which has run here a hundred times.
func BenchmarkScrape(b *testing.B) {
	const jobs = 10_000
	before := heap()
	reg := prometheus.NewRegistry()
	m, err := metrics.New(reg, "v1.2.3")
	require.NoError(b, err)
	busy(m, jobs, 100)
	perJob := float64(heap()-before) / jobs
	handler := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	for _, form := range []struct{ name, accept string }{
		{"text", "text/plain"},
		{"protobuf", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
	} {
		b.Run(form.name, func(b *testing.B) {
			size := int64(0)
			for b.Loop() {
				req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", http.NoBody)
				req.Header.Set("Accept", form.accept)
				answer := &sized{header: http.Header{}}
				handler.ServeHTTP(answer, req)
				size = answer.n
			}
			b.ReportMetric(float64(size)/jobs, "B/job")
			b.ReportMetric(perJob, "heap-B/job")
		})
	}
	runtime.KeepAlive(m)
}

func busy(m *metrics.Metrics, jobs, runs int) {
	m.Observe(cronrunner.Elected{Term: 1})
	for i := range jobs {
		job := fmt.Sprintf("customer-%05d-report", i)
		m.Observe(cronrunner.Planned{Job: job, Status: state.JobStatus{NextRunAt: nine}})
		for r := range runs {
			run := ran(job, fmt.Sprint(r), state.Succeeded)
			run.DurationMS = int64(1000 + 37*r)
			start(m, run, time.Duration(r)*time.Millisecond)
			m.Observe(cronrunner.Recorded{Run: run, Status: state.JobStatus{LastSuccessAt: nine}})
		}
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// sized is an answer of which only the size is kept.
type sized struct {
	header http.Header
	n      int64
}

func (c *sized) Header() http.Header { return c.header }
func (c *sized) WriteHeader(int)     {}
func (c *sized) Write(p []byte) (int, error) {
	n, err := io.Discard.Write(p)
	c.n += int64(n)
	return n, err
}
