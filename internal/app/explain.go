package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// noAnswerError is an etcd that does not answer, in words for people.
type noAnswerError struct {
	endpoints []string
	reason    string
	hint      string
}

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("no connection to etcd at %s: %s; %s", strings.Join(e.endpoints, ","), e.reason, e.hint)
}

func (e *noAnswerError) Is(target error) bool { return target == ErrNoConnection }

// seen is what the calls made with a context last failed with, as gRPC said it. The client itself makes
// "deadline exceeded" of it, which says nothing of an etcd that is not there.
type seen struct{ last atomic.Pointer[error] }

type seenKey struct{}

// witnessed is ctx for calls whose errors are to be seen.
func witnessed(ctx context.Context) (context.Context, *seen) {
	s := &seen{}
	return context.WithValue(ctx, seenKey{}, s), s
}

// witness is the interceptor that sees them. It stands below the client's own retries.
func witness(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if s, ok := ctx.Value(seenKey{}).(*seen); ok && err != nil && (s.last.Load() == nil || reasonOf(err) != noReply) {
		s.last.Store(&err) // that there was no answer in time says less than what was there before
	}
	return err
}

// failure is err as a person wants to read it: ctx's cause if it was the caller who gave up, bad input
// if etcd refuses us, else a noAnswerError.
func (c *connection) failure(ctx context.Context, err error, s *seen) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	user, _, _ := strings.Cut(c.cfg.User, ":")
	at := strings.Join(c.cfg.Endpoints, ",")
	switch err := rpctypes.Error(err); {
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return badInput("etcd at %s wants a user; give --user and --password-file", at)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserNotFound):
		return badInput("etcd at %s does not take user %q with this password; check --user and --password-file", at, user)
	}
	if last := s.last.Load(); last != nil {
		err = *last
	}
	reason := reasonOf(err)
	return &noAnswerError{endpoints: c.cfg.Endpoints, reason: reason, hint: hintFor(reason)}
}

// reasonOf is the core of a gRPC error, which comes wrapped in the names of all layers.
func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return noReply
	}
	text := status.Convert(err).Message()
	if _, quoted, ok := strings.Cut(text, "desc = "); ok {
		if inner, err := strconv.Unquote(quoted); err == nil {
			text = inner
		}
	}
	for _, layer := range []string{"latest balancer error: ", "transport: ", "Error while dialing: ", "etcdserver: "} {
		text = strings.TrimPrefix(text, layer)
	}
	for _, gaveUp := range []string{context.DeadlineExceeded.Error(), context.Canceled.Error(), "RST_STREAM"} {
		if strings.Contains(text, gaveUp) {
			return noReply
		}
	}
	return text
}

const noReply = "no answer in time"

// hints are what to try, by what a reason holds; the first that fits counts.
var hints = []struct{ holds, hint string }{
	{"connection refused", `is it running? "etcdcron serve -c FILE" starts one; --endpoints names another`},
	{"no such file", "is it running? Check the path in --endpoints"},
	{"no such host", "check the host's name in --endpoints"},
	{"server misbehaving", "check the host's name in --endpoints, or the name server"},
	{"handshake failed: EOF", "it may not use TLS: then give --endpoints with http://, and no --cacert"},
	{"x509", "check --cacert, and that the certificate is for that host"},
	{"tls:", "check --cacert, --cert and --key"},
	{"looked like an HTTP/1.1 header", "something else listens there; check --endpoints"},
	{"server preface", "does it use TLS? Then give --endpoints with https://, and --cacert"},
	{"malformed header", "that is not an etcd; check --endpoints, and HTTPS_PROXY"},
	{"no leader", "its cluster has lost its majority; bring members back"},
	{"request timed out", "its cluster may have lost its majority, or its disk is slow"},
	{"permission denied", "the user may not read this; ask for a role on the prefix"},
}

func hintFor(reason string) string {
	for _, h := range hints {
		if strings.Contains(reason, h.holds) {
			return h.hint
		}
	}
	return "check --endpoints, and that etcd has a leader (etcdctl endpoint health)"
}
