package httpapi

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is how many clients are connected at once.
const maxConnections = 512

// crowd bounds the connections. When there is one too many, the one that has been without a request for longest
// gives way, so that who connects and asks for nothing keeps nobody out. If all are being answered, the new one does.
type crowd struct {
	limit int

	mu   sync.Mutex
	here map[net.Conn]time.Time // since when without a request; zero for one that is being answered
}

func newCrowd(limit int) *crowd { return &crowd{limit: limit, here: make(map[net.Conn]time.Time)} }

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
	case http.StateNew, http.StateIdle:
		c.here[conn] = time.Now()
	case http.StateActive:
		c.here[conn] = time.Time{}
	case http.StateClosed, http.StateHijacked:
		delete(c.here, conn)
	}
	if state != http.StateNew || len(c.here) <= c.limit {
		return nil
	}
	leaves = conn
	longest := c.here[conn]
	for other, since := range c.here {
		if !since.IsZero() && since.Before(longest) {
			leaves, longest = other, since
		}
	}
	delete(c.here, leaves)
	return leaves
}
