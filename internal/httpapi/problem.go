package httpapi

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

// problem is an answer that says what is wrong: {"error": {code, message, hint}}.
type problem struct {
	status int
	after  string // Retry-After, in seconds; "" for none

	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	} `json:"error"`
}

// The codes that are of HTTP alone; the others are the kinds of faults.
const (
	codeUnauthorized  = "unauthorized"
	codeForbidden     = "forbidden"
	codeNoRoute       = "no_route"
	codeBadMethod     = "method_not_allowed"
	codeBadMediaType  = "unsupported_media_type"
	codeBodyTooLarge  = "body_too_large"
	codeBodyTimeout   = "body_timeout"
	codeInternalError = "internal"
)

func newProblem(status int, code, message, hint string) *problem {
	p := &problem{status: status}
	p.Error.Code, p.Error.Message, p.Error.Hint = code, message, hint
	return p
}

// refused is a problem as an error.
type refusedError struct{ *problem }

func (e refusedError) Error() string { return e.problem.Error.Message }

func refuse(status int, code, message, hint string) error {
	return refusedError{newProblem(status, code, message, hint)}
}

// statusOf is the one place where kinds of faults become HTTP statuses.
func statusOf(kind fault.Kind) int {
	switch kind {
	case fault.BadInput:
		return http.StatusBadRequest
	case fault.NotFound, fault.NotLeading:
		return http.StatusNotFound
	case fault.Paused, fault.Retired, fault.Invalid, fault.RunOver, fault.RunNotOver:
		return http.StatusConflict
	case fault.UnknownOutcome, fault.Interrupted:
		return http.StatusGatewayTimeout
	case fault.NoConnection, fault.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// kindOf is the kind of an error that does not say it itself.
func kindOf(err error) fault.Kind {
	switch {
	case errors.Is(err, state.ErrBadName), errors.Is(err, state.ErrBadRequest):
		return fault.BadInput
	case errors.Is(err, state.ErrNotFound):
		return fault.NotFound
	case errors.Is(err, context.Canceled):
		return fault.Interrupted
	case state.Unreachable(err):
		return fault.NoConnection
	}
	return ""
}

// problemOf is what a client is told of an error.
func problemOf(err error) *problem {
	if refused, ok := errors.AsType[refusedError](err); ok {
		return refused.problem
	}
	f := fault.Of(err)
	if f == nil {
		f = &fault.Error{Kind: kindOf(err), Err: err}
	}
	if f.Kind == "" {
		return newProblem(http.StatusInternalServerError, codeInternalError, err.Error(), "the log of this instance may say more")
	}
	p := newProblem(statusOf(f.Kind), string(f.Kind), f.Error(), f.Hint)
	if f.Kind == fault.NoConnection && f.Hint == "" {
		p.Error.Message = "etcd does not answer: " + f.Error()
		p.Error.Hint = "GET /readyz says how this instance does; look at etcd with: etcdctl endpoint status --cluster"
	}
	if p.status == http.StatusServiceUnavailable {
		p.after = "1"
	}
	return p
}

// fail answers with what is wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.status == http.StatusInternalServerError {
		s.log.Warn("a request failed", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Error(err))
	}
	p.write(w)
}

func (p *problem) write(w http.ResponseWriter) {
	if p.after != "" {
		w.Header().Set("Retry-After", p.after)
	}
	reply(w, p.status, p)
}
