package httpapi

import (
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/httpapi/web"
	"github.com/etcdcron/etcdcron/state"
)

// mountPages puts the web page where it has its place.
func (s *Server) mountPages(mux *http.ServeMux) {
	cfg := web.Config{
		Etcd: func() (*clientv3.Client, *state.Store, bool) {
			b := s.etcd.Load()
			if b == nil {
				return nil, nil, false
			}
			return b.client, b.store, true
		},
		Caller: func(r *http.Request) web.Caller {
			c := callerOf(r)
			return web.Caller{Name: c.String(), MayAsk: c.mayAsk, Known: c.checked, SignedIn: c.session}
		},
		Logger: s.log,
	}
	if a := s.cfg.Access; a.takesTokens() {
		cfg.Open = a.open
	}
	pages := web.New(cfg)
	for _, path := range web.Paths() {
		mux.Handle(path, pages)
	}
}

func (a *Access) takesTokens() bool { return a != nil && (a.operator != nil || a.reader != nil) }

// open is the key of the session of somebody who signs in with a token.
func (a *Access) open(shown string) (key []byte, ok bool) {
	for _, t := range []*token{a.operator, a.reader} {
		if t.is(shown) {
			sum := t.sum()
			return sum[:], true
		}
	}
	return nil, false
}

// sealed reports whether a request comes from a session that was opened with this token.
func (t *token) sealed(r *http.Request, now time.Time) bool {
	if t == nil {
		return false
	}
	key := t.sum()
	return web.Sealed(r, key[:], now)
}
