package app

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

const (
	// traceFlushLimit is how long a stopping instance waits for the collector.
	traceFlushLimit = 2 * time.Second
	// traceComplaint is how often a collector that does not take the traces is named.
	traceComplaint = time.Minute
)

// traces are exported as the environment says, with the variables that OpenTelemetry's specification gives: only if
// one of them names a collector. They wait in a queue of bounded length, and are dropped when that is full: a
// collector that is away holds nothing up.
type traces struct {
	provider *sdktrace.TracerProvider
	exporter *calmExporter
}

// otlpVariable is the value of OTEL_EXPORTER_OTLP_TRACES_x, or of OTEL_EXPORTER_OTLP_x, and which one it is.
func otlpVariable(x string) (name, value string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + x, "OTEL_EXPORTER_OTLP_" + x} {
		if value := os.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// startTraces returns nil if no traces are wanted. It connects to nothing.
func startTraces(ctx context.Context, version string, log *zap.Logger) (*traces, error) {
	name, endpoint := otlpVariable("ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil //nolint:nilnil // there is nothing, and that is right
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, badInput("%s must be a URL such as http://127.0.0.1:4318", name)
	}
	client, err := otlpClient()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, badInput("traces cannot be exported as the variables OTEL_EXPORTER_OTLP_… say: %w", err)
	}
	about, err := resource.New(
		ctx, resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "etcdcron"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // the user has the last word
	)
	if err != nil {
		return nil, badInput("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &traces{exporter: newCalmExporter(exporter, log)}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(t.exporter), sdktrace.WithResource(about))
	log.Info("traces go to a collector", zap.String("variable", name))
	return t, nil
}

func otlpClient() (otlptrace.Client, error) {
	switch name, protocol := otlpVariable("PROTOCOL"); protocol {
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, badInput("%s: %q is not supported; use http/protobuf (the default) or grpc", name, protocol)
	}
}

// tracerProvider is nil when no traces are wanted.
func (t *traces) tracerProvider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// close exports what there is, within traceFlushLimit, and ends.
func (t *traces) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceFlushLimit)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what it could not export was named
	t.exporter.giveUp()
	<-t.exporter.ended
}

// calmExporter names what could not be exported now and then only, and gives up when told to.
type calmExporter struct {
	sdktrace.SpanExporter

	log    *zap.Logger
	life   context.Context //nolint:containedctx // of the exporter; each export has its own limit too
	giveUp context.CancelFunc
	ended  chan struct{} // closed by Shutdown, which comes after the last export

	mu    sync.Mutex
	named time.Time // when it was last said that spans are lost
	lost  int       // since then
}

func newCalmExporter(inner sdktrace.SpanExporter, log *zap.Logger) *calmExporter {
	e := &calmExporter{SpanExporter: inner, log: log, ended: make(chan struct{})}
	e.life, e.giveUp = context.WithCancel(context.Background())
	return e
}

// ExportSpans returns no error: OpenTelemetry would write it to a log of the whole process.
func (e *calmExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.complain(err, len(spans))
	}
	return nil
}

func (e *calmExporter) complain(err error, spans int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += spans
	if time.Since(e.named) < traceComplaint {
		return
	}
	e.log.Warn("the collector does not take the traces; they are dropped", zap.Int("spans", e.lost), zap.Error(err))
	e.named, e.lost = time.Now(), 0
}

// Shutdown is called once, after the last export.
func (e *calmExporter) Shutdown(ctx context.Context) error {
	defer close(e.ended)
	if err := e.SpanExporter.Shutdown(ctx); err != nil {
		return fmt.Errorf("close the traces' exporter: %w", err)
	}
	return nil
}
