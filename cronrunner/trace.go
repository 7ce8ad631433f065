package cronrunner

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/etcdcron/etcdcron/state"
)

// Traces. What an instance does of a run is one trace: a span from the claim, or the take-over, to the record, with
// the job's name; in it one for each attempt, whose context the handler gets, and one for each transaction. The
// record says where the trace is, so whoever goes on with a run that has lost its instance links his to it.

// instrumentation is the scope of our spans.
const instrumentation = "github.com/etcdcron/etcdcron/cronrunner"

// tracing begins traces. Nil begins none: everything of a run without a trace costs nothing.
type tracing struct{ tracer trace.Tracer }

func newTracing(provider trace.TracerProvider, version string) *tracing {
	if provider == nil {
		return nil
	}
	return &tracing{provider.Tracer(instrumentation, trace.WithInstrumentationVersion(version))}
}

// runTrace is the trace of a run at this instance; nil without tracing.
type runTrace struct {
	tracer trace.Tracer
	span   trace.Span
}

// begin begins the trace of a run that is about to be claimed or taken over, and notes it in its record, if the
// trace is kept. If nothing comes of that, it is forgotten: a span that does not end is nowhere.
func (t *tracing) begin(r *state.Run) *runTrace {
	if t == nil {
		return nil
	}
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithAttributes(
			attribute.String("etcdcron.job", r.Job),
			attribute.String("etcdcron.run.id", r.ID),
			attribute.String("etcdcron.run.trigger", string(r.Trigger)),
			attribute.String("etcdcron.run.scheduled_at", r.ScheduledAt.UTC().Format(time.RFC3339)),
			attribute.String("etcdcron.instance", r.Instance),
			attribute.Int64("etcdcron.term", r.Term),
		),
	}
	if earlier := spanContextOf(r.Traceparent); earlier.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: earlier}))
	}
	_, span := t.tracer.Start(context.Background(), r.Job, options...) //nolint:spancheck // see above
	r.Traceparent = traceparentOf(span.SpanContext())
	return &runTrace{tracer: t.tracer, span: span} //nolint:spancheck // see above
}

// context is ctx with the run's span.
func (rt *runTrace) context(ctx context.Context) context.Context {
	if rt == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, rt.span)
}

// attempt begins the span of an attempt.
func (rt *runTrace) attempt(ctx context.Context, r *state.Run) (context.Context, *attemptTrace) {
	if rt == nil {
		return ctx, nil
	}
	ctx, span := rt.tracer.Start(ctx, "attempt", trace.WithAttributes( //nolint:spancheck // its end has a method
		attribute.Int("etcdcron.attempt", r.Attempt),
		attribute.Int64("etcdcron.fencing_token", r.FencingToken),
	))
	return ctx, &attemptTrace{span} //nolint:spancheck // as above
}

// commit begins the span of a transaction, which ends with its outcome.
func (rt *runTrace) commit(name string) (done func(error)) {
	if rt == nil {
		return untraced
	}
	_, span := rt.tracer.Start(rt.context(context.Background()), name, trace.WithSpanKind(trace.SpanKindClient))
	return func(err error) {
		fail(span, err)
		span.End()
	}
}

func untraced(error) {}

// end ends the trace of a run as its record says.
func (rt *runTrace) end(r *state.Run) {
	if rt == nil {
		return
	}
	rt.span.SetAttributes(
		attribute.String("etcdcron.run.status", string(r.Status)),
		attribute.Int("etcdcron.attempt", r.Attempt),
		attribute.Int("etcdcron.run.retries", r.Retries),
		attribute.Int("etcdcron.run.recoveries", r.Recoveries),
	)
	if r.Reason != "" {
		rt.span.SetAttributes(attribute.String("etcdcron.run.reason", r.Reason))
	}
	if r.Status != state.Succeeded {
		rt.span.SetStatus(codes.Error, state.CutHead(orDefault(r.Error, string(r.Status)), maxLogged))
	}
	rt.span.End()
}

// interrupted ends the trace of a run that goes on elsewhere.
func (rt *runTrace) interrupted(cause error) {
	if rt == nil {
		return
	}
	fail(rt.span, cause)
	rt.span.AddEvent("interrupted")
	rt.span.End()
}

// attemptTrace is the span of an attempt; nil without tracing.
type attemptTrace struct{ span trace.Span }

func (at *attemptTrace) end(res *result) {
	if at == nil {
		return
	}
	fail(at.span, res.err)
	if res.cause != nil {
		at.span.AddEvent("told to stop", trace.WithAttributes(attribute.String("etcdcron.cause", res.cause.Error())))
	}
	at.span.End()
}

// checkpoint notes that one is durable.
func (at *attemptTrace) checkpoint(size int) {
	if at == nil {
		return
	}
	at.span.AddEvent("checkpoint", trace.WithAttributes(attribute.Int("etcdcron.checkpoint.bytes", size)))
}

func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	if p, ok := errors.AsType[*panicError](err); ok { // its text has the stack
		span.AddEvent("exception", trace.WithAttributes(
			attribute.String("exception.type", "panic"), attribute.String("exception.stacktrace", state.CutHead(p.text, state.MaxError))))
	}
	span.SetStatus(codes.Error, state.CutHead(err.Error(), maxLogged))
}

// traceparentOf is the trace context in the form of W3C's header of that name; "" of one that is not kept.
func traceparentOf(sc trace.SpanContext) string {
	if !sc.IsValid() || !sc.IsSampled() {
		return ""
	}
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// spanContextOf reads what traceparentOf wrote; what it cannot read is not valid.
func spanContextOf(traceparent string) trace.SpanContext {
	const length, traceAt, spanAt, flagsAt = 55, 3, 36, 53
	if len(traceparent) != length {
		return trace.SpanContext{}
	}
	traceID, err1 := trace.TraceIDFromHex(traceparent[traceAt : spanAt-1])
	spanID, err2 := trace.SpanIDFromHex(traceparent[spanAt : flagsAt-1])
	flags, err3 := strconv.ParseUint(traceparent[flagsAt:], 16, 8)
	if errors.Join(err1, err2, err3) != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags), Remote: true,
	})
}
