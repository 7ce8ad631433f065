package cronrunner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/etcdcron/etcdcron/state"
)

// recorded is a provider that keeps every trace, and what it keeps.
func recorded(t *testing.T, options ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(recorder))...)
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return provider, recorder
}

// traceOf is the spans of the trace that a record names, in the order in which they began.
func traceOf(recorder *tracetest.SpanRecorder, r *state.Run) (root sdktrace.ReadOnlySpan, children []sdktrace.ReadOnlySpan) {
	sc := spanContextOf(r.Traceparent)
	for _, s := range recorder.Ended() {
		switch {
		case s.SpanContext().TraceID() != sc.TraceID():
		case s.SpanContext().SpanID() == sc.SpanID():
			root = s
		default:
			children = append(children, s)
		}
	}
	slices.SortStableFunc(children, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return root, children
}

func names(spans []sdktrace.ReadOnlySpan) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name())
	}
	return names
}

func valueOf(s sdktrace.ReadOnlySpan, key string) any {
	for _, kv := range s.Attributes() {
		if kv.Key == attribute.Key(key) {
			return kv.Value.AsInterface()
		}
	}
	return nil
}

func TestARunIsATrace(t *testing.T) {
	b := newBench(t)
	provider, recorder := recorded(t)
	j := secondly("billing", func(ctx context.Context, run *Run) error {
		_, own := provider.Tracer("the user's").Start(ctx, "charge")
		defer own.End()
		if err := run.Checkpoint(ctx, run.Attempt()); err != nil {
			return err
		}
		if run.Attempt() == 1 {
			return errors.New("no money")
		}
		return nil
	})
	j.Retry = Retry{MaxAttempts: 2, Initial: time.Millisecond, Max: time.Millisecond}
	i := b.start(Config{TracerProvider: provider}, j)
	b.waitRuns("billing", reached(1, state.Succeeded))
	i.stop()

	r := b.runs("billing")[0]
	root, spans := traceOf(recorder, &r)
	require.NotNil(t, root)
	require.Equal(t, "billing", root.Name())
	require.False(t, root.Parent().IsValid())
	require.Equal(t, codes.Unset, root.Status().Code)
	require.Equal(t, []string{"claim", "attempt", "charge", "retry", "next attempt", "attempt", "charge", "finish"}, names(spans))
	for key, want := range map[string]any{
		"etcdcron.job": "billing", "etcdcron.run.id": r.ID, "etcdcron.run.trigger": "schedule", "etcdcron.instance": i.ID(),
		"etcdcron.run.scheduled_at": r.ScheduledAt.Format(time.RFC3339), "etcdcron.term": r.Term,
		"etcdcron.run.status": "succeeded", "etcdcron.attempt": int64(2), "etcdcron.run.retries": int64(1),
	} {
		require.Equal(t, want, valueOf(root, key), key)
	}
	first, charge, second := spans[1], spans[2], spans[5]
	require.Equal(t, first.SpanContext().SpanID(), charge.Parent().SpanID(), "the handler's own spans are in its attempt")
	for _, s := range spans {
		if s.Name() != "charge" {
			require.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
		}
	}
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "no money"}, first.Status())
	require.Equal(t, codes.Unset, second.Status().Code)
	require.Equal(t, "checkpoint", first.Events()[0].Name)
	require.Equal(t, r.Attempts[0].FencingToken, valueOf(first, "etcdcron.fencing_token"))
	require.Equal(t, r.FencingToken, valueOf(second, "etcdcron.fencing_token"))
}

func TestAFailedRunAndAPanicInATrace(t *testing.T) {
	b := newBench(t)
	provider, recorder := recorded(t)
	i := b.start(Config{TracerProvider: provider}, secondly("wild", func(context.Context, *Run) error { panic("boom") }))
	b.waitRuns("wild", reached(1, state.Failed))
	i.stop()
	r := b.runs("wild")[0]
	root, spans := traceOf(recorder, &r)
	require.Equal(t, codes.Error, root.Status().Code)
	require.Equal(t, state.ReasonPanic, valueOf(root, "etcdcron.run.reason"))
	attempt := spans[1]
	require.Contains(t, attempt.Status().Description, "panic: boom")
	require.Less(t, len(attempt.Status().Description), maxLogged+1)
	require.Equal(t, "exception", attempt.Events()[0].Name)
}

// Who goes on with a run links to the trace of whom it was lost by.
func TestARecoveredRunIsLinked(t *testing.T) {
	b := newBench(t)
	provider, recorder := recorded(t)
	release := make(chan struct{})
	j := secondly("long", func(ctx context.Context, run *Run) error {
		if run.Attempt() > 1 {
			return nil
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	j.End = time.Now().Add(3 * time.Second) // few runs
	first := b.start(Config{TracerProvider: provider}, j)
	running := b.waitRuns("long", reached(1, state.Running))[0]
	second := b.start(Config{TracerProvider: provider}, j)
	b.handOver(first, second)
	revokeLocks(t, b)
	runs := b.waitRuns("long", reached(1, state.Succeeded))
	close(release)
	first.stop()
	second.stop()

	require.NotEqual(t, running.Traceparent, runs[0].Traceparent)
	was, _ := traceOf(recorder, &running)
	require.Equal(t, codes.Error, was.Status().Code)
	require.Equal(t, "interrupted", was.Events()[0].Name)
	root, spans := traceOf(recorder, &runs[0])
	require.Len(t, root.Links(), 1)
	require.Equal(t, was.SpanContext().TraceID(), root.Links()[0].SpanContext.TraceID())
	require.Equal(t, []string{"take over", "attempt", "finish"}, names(spans))
}

// A trace that is not kept is handed on as such, and leaves nothing in the record.
func TestATraceThatIsNotKept(t *testing.T) {
	b := newBench(t)
	provider, recorder := recorded(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	seen := make(chan trace.SpanContext, 100)
	i := b.start(Config{TracerProvider: provider}, secondly("tick", func(ctx context.Context, _ *Run) error {
		seen <- trace.SpanContextFromContext(ctx)
		return nil
	}))
	sc := <-seen
	require.True(t, sc.IsValid())
	require.False(t, sc.IsSampled())
	runs := b.waitRuns("tick", reached(1, state.Succeeded))
	i.stop()
	require.Empty(t, runs[0].Traceparent)
	require.Empty(t, recorder.Ended())
}

func TestWithoutTracing(t *testing.T) { // AllocsPerRun is not for parallel tests
	require.Zero(t, testing.AllocsPerRun(100, untracedRun), "it must cost nothing")
}

// untracedRun is all that a run does for its trace when there is none.
func untracedRun() {
	var t *tracing
	r := state.Run{Job: "billing", ID: "r1", Attempt: 1}
	traced := t.begin(&r)
	claimed := traced.commit("claim")
	claimed(nil)
	ctx, attempt := traced.attempt(traced.context(context.Background()), &r)
	attempt.checkpoint(1)
	attempt.end(&result{})
	finished := traced.commit("finish")
	finished(ctx.Err())
	traced.end(&r)
	if r.Traceparent != "" {
		panic("it has a trace")
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const w3c = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	sc := spanContextOf(w3c)
	require.True(t, sc.IsValid() && sc.IsSampled() && sc.IsRemote())
	require.Equal(t, w3c, traceparentOf(sc))
	require.Empty(t, traceparentOf(sc.WithTraceFlags(0)))
	for _, bad := range []string{"", "00", w3c + "-", "00-" + w3c[3:20] + "zz" + w3c[22:], w3c[:53] + "xx"} {
		require.False(t, spanContextOf(bad).IsValid(), bad)
	}
}

func BenchmarkTrace(b *testing.B) {
	b.Run("off", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			untracedRun()
		}
	})
	b.Run("on", func(b *testing.B) {
		provider := sdktrace.NewTracerProvider()
		t := newTracing(provider, "")
		b.ReportAllocs()
		for b.Loop() {
			r := state.Run{Job: "billing", ID: "r1", Attempt: 1}
			traced := t.begin(&r)
			traced.commit("claim")(nil)
			_, attempt := traced.attempt(traced.context(context.Background()), &r)
			attempt.end(&result{})
			traced.commit("finish")(nil)
			traced.end(&r)
		}
	})
}
