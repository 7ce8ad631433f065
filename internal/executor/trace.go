package executor

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// Where the trace of a run is goes to whatever it calls in the form of W3C's Trace Context: to a webhook as headers, to
// a command as variables of the same names, as OpenTelemetry has it for environments. Without a trace there is
// nothing.

func traceHeaders(ctx context.Context) http.Header {
	headers := make(http.Header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(headers))
	return headers
}

// traceVariables go after env. A TRACESTATE there that belongs to another trace does not stand beside ours.
func traceVariables(ctx context.Context, env []string) []string {
	headers := traceHeaders(ctx)
	if len(headers) == 0 {
		return nil
	}
	variables := []string{"TRACEPARENT=" + headers.Get("Traceparent")}
	if state := headers.Get("Tracestate"); state != "" || variable(env, "TRACESTATE") != "" {
		variables = append(variables, "TRACESTATE="+state)
	}
	return variables
}
