package executor

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// traced is a context in a trace.
func traced(t *testing.T, flags trace.TraceFlags, vendors string) context.Context {
	t.Helper()
	traceState, err := trace.ParseTraceState(vendors)
	require.NoError(t, err)
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, TraceState: traceState,
	}))
}

const inTrace = "00-01000000000000000000000000000000-0200000000000000-"

func TestACommandIsToldOfItsTrace(t *testing.T) {
	t.Setenv("TRACEPARENT", "00-of-another-trace")
	t.Setenv("TRACESTATE", "of=another")
	say := Command{Shell: `echo "$TRACEPARENT ${TRACESTATE}"`}
	for name, tc := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"kept":            {traced(t, trace.FlagsSampled, ""), inTrace + "01 \n"},
		"not kept":        {traced(t, 0, ""), inTrace + "00 \n"},
		"with tracestate": {traced(t, trace.FlagsSampled, "vendor=x"), inTrace + "01 vendor=x\n"},
		"without tracing": {t.Context(), "00-of-another-trace of=another\n"},
	} {
		run := &fakeRun{}
		require.NoError(t, say.do(tc.ctx, run, zap.NewNop(), nil), name)
		require.Equal(t, tc.want, run.output, name)
	}
}

func TestAWebhookIsToldOfItsTrace(t *testing.T) {
	t.Parallel()
	var got http.Header
	server := target(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	require.NoError(t, send(traced(t, trace.FlagsSampled, "vendor=x"), t, Webhook{URL: server.URL}, &fakeRun{}))
	require.Equal(t, inTrace+"01", got.Get("Traceparent"))
	require.Equal(t, "vendor=x", got.Get("Tracestate"))

	own := Webhook{URL: server.URL, Headers: map[string]HeaderValue{"traceparent": {Text: "mine"}}}
	require.NoError(t, send(traced(t, trace.FlagsSampled, ""), t, own, &fakeRun{}))
	require.Equal(t, []string{"mine"}, got.Values("Traceparent"))

	require.NoError(t, send(t.Context(), t, Webhook{URL: server.URL}, &fakeRun{}))
	require.NotContains(t, got, "Traceparent")
}

func TestEveryLineSaysOfWhichAttemptItIs(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.DebugLevel)
	require.NoError(t, Command{Shell: "echo hello"}.do(t.Context(), &fakeRun{}, zap.New(core), nil))
	require.NotZero(t, lines.Len())
	for _, line := range lines.All() {
		fields := line.ContextMap()
		require.Equal(t, "billing", fields["job"], line.Message)
		require.Equal(t, "20261130T010000Z", fields["run"], line.Message)
		require.Equal(t, int64(1), fields["attempt"], line.Message)
		require.Equal(t, int64(5), fields["term"], line.Message)
	}
}
