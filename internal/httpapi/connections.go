package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is how many clients are connected at once.
const maxConnections = 512

// crowd bounds the connections. When there is one too many, the one that nothing has been answered to for longest gives
// way, so that who connects and asks for nothing keeps nobody out. If all are being answered, the new one does. A
// connection is being answered while a handler runs: not yet while headers are awaited, and no more while net/http waits
// for the rest of a body that was refused, for which anybody may have it wait.
type crowd struct {
	limit int

	mu   sync.Mutex
	here map[net.Conn]*seat
}

// seat is of one connection.
type seat struct {
	since     time.Time // when it last came, was answered, or became idle
	answering int       // handlers that run; several at once with HTTP/2
}

func newCrowd(limit int) *crowd { return &crowd{limit: limit, here: make(map[net.Conn]*seat)} }

type connKey struct{}

// withConn is the server's ConnContext: a request's context has its connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// seated keeps the connections of requests from having to go while these are answered.
func (c *crowd) seated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		c.answering(conn, 1)
		defer c.answering(conn, -1)
		next.ServeHTTP(w, r)
	})
}

// answering takes in that more, or less, is being answered on a connection; one that has gone is of no interest.
func (c *crowd) answering(conn net.Conn, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.here[conn]; at != nil {
		at.answering += more
		at.since = time.Now()
	}
}

// changed is the server's ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	if leaves := c.note(conn, state); leaves != nil {
		if secure, ok := leaves.(*tls.Conn); ok {
			leaves = secure.NetConn() // rather than wait until it has taken its leave
		}
		_ = leaves.Close() // an error is of a connection that is gone already
	}
}

// note takes in a connection's new state, and returns the one that has to go; nil for none.
func (c *crowd) note(conn net.Conn, state http.ConnState) (leaves net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.here[conn] = &seat{since: time.Now()}
	case http.StateIdle:
		if at := c.here[conn]; at != nil {
			at.since = time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.here, conn)
	case http.StateActive: // as seated says
	}
	if state != http.StateNew || len(c.here) <= c.limit {
		return nil
	}
	leaves = conn
	longest := c.here[conn].since
	for other, at := range c.here {
		if at.answering == 0 && at.since.Before(longest) {
			leaves, longest = other, at.since
		}
	}
	delete(c.here, leaves)
	return leaves
}
