package app

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// otel sets the variables of OpenTelemetry, and no others of it.
func otel(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestTracesAreForWhomWantsThem(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, variables := range []map[string]string{
		{},
		{endpoint: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"},
		{endpoint: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		otel(t, variables)
		none, err := startTraces(t.Context(), "v1", zap.NewNop())
		require.NoError(t, err)
		require.Nil(t, none)
		require.Nil(t, none.tracerProvider())
		none.close()
	}
	for _, variables := range []map[string]string{
		{endpoint: "http://127.0.0.1:4318"},
		{endpoint: "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
	} {
		otel(t, variables)
		some, err := startTraces(t.Context(), "v1", zap.NewNop())
		require.NoError(t, err)
		require.NotNil(t, some.tracerProvider())
		some.close()
	}
}

func TestTracesOfBadVariables(t *testing.T) {
	for want, variables := range map[string]map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://127.0.0.1:4318": {"OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318"},
		`OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" is not supported`: {
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		},
		"OTEL_RESOURCE_ATTRIBUTES": {
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_RESOURCE_ATTRIBUTES": "no-value",
		},
	} {
		otel(t, variables)
		_, err := startTraces(t.Context(), "v1", zap.NewNop())
		require.ErrorIs(t, err, ErrBadInput)
		require.ErrorContains(t, err, want)
	}
}

// A collector that takes connections and says nothing holds up neither runs nor the end, and is named once.
func TestACollectorThatIsSilent(t *testing.T) {
	otel(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + deaf(t), "OTEL_BSP_EXPORT_TIMEOUT": "100", "OTEL_BSP_SCHEDULE_DELAY": "20",
	})
	i := begin(t, embed1(t, everySecond))
	const complaint = "the collector does not take the traces"
	i.log.await(t, complaint)
	n := i.log.FilterMessage("run finished").Len()
	require.Eventually(t, func() bool { return i.log.FilterMessage("run finished").Len() >= n+3 }, patience, 10*time.Millisecond)
	require.NoError(t, i.end())
	require.Equal(t, 1, strings.Count(i.log.text(), complaint))
}

// stuck is an exporter that goes on until its context ends.
type stuck struct{ exporting chan struct{} }

func (s *stuck) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	close(s.exporting)
	<-ctx.Done()
	return ctx.Err()
}

func (s *stuck) Shutdown(context.Context) error { return nil }

func TestTheEndDoesNotWaitForACollector(t *testing.T) {
	t.Parallel()
	j := newJournal(zapcore.InfoLevel)
	inner := &stuck{exporting: make(chan struct{})}
	e := newCalmExporter(inner, j.log)
	s := &traces{exporter: e, provider: sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(e, sdktrace.WithExportTimeout(time.Hour), sdktrace.WithBatchTimeout(time.Millisecond)))}
	_, span := s.provider.Tracer("").Start(t.Context(), "run")
	span.End()
	<-inner.exporting
	closed := make(chan struct{})
	go func() { s.close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		require.Fail(t, "it waits")
	}
	j.await(t, "the collector does not take the traces")
}
