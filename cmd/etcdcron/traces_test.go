package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes traces over OTLP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*tracepb.Span
	services map[string]bool
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{services: make(map[string]bool)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request coltracepb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range request.GetResourceSpans() {
			for _, attribute := range resource.GetResource().GetAttributes() {
				if attribute.GetKey() == "service.name" {
					c.services[attribute.GetValue().GetStringValue()] = true
				}
			}
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// find waits for a span.
func (c *collector) find(t *testing.T, match func(*tracepb.Span) bool) *tracepb.Span {
	t.Helper()
	var found *tracepb.Span
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			if match(s) {
				found = s
			}
		}
		return found != nil
	}, patience, 20*time.Millisecond)
	return found
}

// A command's TRACEPARENT is the span of its attempt, in the trace of its run, as a collector has it.
func TestServeExportsTraces(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_SERVICE_NAME", "nightly")
	_, p := serving(t, `
jobs:
  traced:
    schedule: "* * * * * *"
    shell: 'echo "in $TRACEPARENT;"'
`, "--log-format", "json")
	_, said, _ := strings.Cut(p.await("in 00-"), "in 00-")
	traceparent, _, _ := strings.Cut(said, ";")
	ids := strings.Split(traceparent, "-")
	require.Len(t, ids, 3)
	p.await("run finished")
	p.signal(syscall.SIGTERM) // which exports what there is
	require.NoError(t, p.end())

	attempt := c.find(t, func(s *tracepb.Span) bool {
		return hex.EncodeToString(s.GetTraceId()) == ids[0] && hex.EncodeToString(s.GetSpanId()) == ids[1]
	})
	require.Equal(t, "attempt", attempt.GetName())
	run := c.find(t, func(s *tracepb.Span) bool { return string(s.GetSpanId()) == string(attempt.GetParentSpanId()) })
	require.Equal(t, "traced", run.GetName())
	require.Empty(t, run.GetParentSpanId())
	c.find(t, func(s *tracepb.Span) bool {
		return s.GetName() == "finish" && string(s.GetParentSpanId()) == string(run.GetSpanId())
	})
	require.Equal(t, map[string]bool{"nightly": true}, c.services)
}
