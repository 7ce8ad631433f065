package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/internal/httpapi/web"
)

// Access says who may do what. A nil Access lets everybody do everything.
type Access struct {
	operator, reader *token // nil for none
	certificates     bool
}

// Secret is a token: the file that it stands in, which is read again when it changes, or else itself.
type Secret struct{ File, Value string }

func (s Secret) given() bool { return s != Secret{} }

// NewAccess lets those do everything who have the operator's token or, with certificates, a certificate that TLS has
// verified, and those read who have the reader's token. It returns nil when nobody is asked for anything. Errors name
// what is wrong with a token.
func NewAccess(operator, reader Secret, certificates bool, log *zap.Logger) (*Access, error) {
	a := &Access{certificates: certificates}
	var err error
	if operator.given() {
		if a.operator, err = newToken("operator", operator, log); err != nil {
			return nil, err
		}
	}
	if reader.given() {
		if a.reader, err = newToken("reader", reader, log); err != nil {
			return nil, err
		}
	}
	if a.operator != nil && a.reader != nil && a.operator.sum() == a.reader.sum() {
		return nil, errors.New("the tokens of operators and of readers are the same: with it everybody may change everything")
	}
	if a.operator == nil && a.reader == nil && !certificates {
		return nil, nil //nolint:nilnil // nobody is asked for anything
	}
	return a, nil
}

// caller is who asks.
type caller struct {
	name    string // how it is known: "operator token", "certificate jo", "HTTP"
	from    string // its address
	mayAsk  bool   // for changes
	checked bool   // it has shown something
	session bool   // which was the cookie of a session on the web page
}

// String is how a caller is put on record.
func (c caller) String() string { return c.name + " from " + c.from }

// identify says who asks; ok is false for somebody who may not even read.
func (a *Access) identify(r *http.Request) (c caller, ok bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	c = caller{name: "HTTP", from: host}
	if a == nil {
		c.mayAsk = true
		return c, true
	}
	c.checked = true
	if scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		shown = strings.TrimSpace(shown)
		switch { // a file that now holds the reader's token too makes no operator of readers
		case a.reader.is(shown):
			c.name = "reader token"
			return c, true
		case a.operator.is(shown):
			c.name, c.mayAsk = "operator token", true
			return c, true
		}
		return c, false
	}
	now := time.Now()
	switch {
	case a.reader.sealed(r, now): // first, as above
		c.name, c.session = "reader token", true
		return c, true
	case a.operator.sealed(r, now):
		c.name, c.mayAsk, c.session = "operator token", true, true
		return c, true
	}
	if a.certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.name, c.mayAsk = "certificate "+r.TLS.PeerCertificates[0].Subject.CommonName, true
		return c, true
	}
	return c, false
}

type callerKey struct{}

// callerOf is who asks, as guard has found.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// guard lets nobody through who may not do what he asks for. Probes are for everybody, and so is the page to sign in.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" || r.URL.Path == "/readyz" || s.cfg.Access.takesTokens() && web.WithoutSession(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		c, ok := s.cfg.Access.identify(r)
		switch {
		case !ok && s.cfg.Access.takesTokens() && web.SignIn(w, r): // a browser is shown where to
		case !ok:
			w.Header().Set("WWW-Authenticate", `Bearer realm="etcdcron"`)
			newProblem(http.StatusUnauthorized, codeUnauthorized, "this needs a token, or a client certificate",
				"send the header Authorization: Bearer TOKEN").write(w)
		case !c.mayAsk && r.URL.Path != "/sign-out" && r.Method != http.MethodGet && r.Method != http.MethodHead:
			newProblem(http.StatusForbidden, codeForbidden, "with this token one may only read", "the operator's token allows changes").write(w)
		case !c.checked && onLoopback(r) && !s.isOurs(r.Host):
			newProblem(http.StatusForbidden, codeForbidden, "this server is not known as "+r.Host,
				"use an address or localhost, or start serve with --http-host "+hostOf(r.Host)).write(w)
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
		}
	})
}

// onLoopback reports whether a request came in over the loopback interface.
func onLoopback(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if addr == nil {
		return true // it was not served by a net/http server
	}
	at, err := netip.ParseAddrPort(addr.String())
	return err != nil || at.Addr().Unmap().IsLoopback()
}

// isOurs reports whether a host header names this machine: any other is the name of a page that leads its browser here.
func (s *Server) isOurs(host string) bool {
	host = hostOf(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true // no name, so nobody can have it lead here
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// hostOf is a host header without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
