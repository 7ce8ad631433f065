package httpapi

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type named struct {
	net.Conn

	name string
}

// The connection that has been without a request for longest gives way to a new one; one that is being answered does
// not.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := newCrowd(3)
	a, b, busy, d, e := &named{name: "a"}, &named{name: "b"}, &named{name: "busy"}, &named{name: "d"}, &named{name: "e"}
	for _, conn := range []net.Conn{busy, a, b} {
		require.Nil(t, c.note(conn, http.StateNew))
	}
	c.answering(busy, 1)
	require.Equal(t, a, c.note(d, http.StateNew))
	require.Nil(t, c.note(a, http.StateClosed))
	c.answering(a, 1)
	c.answering(b, 1)
	c.answering(d, 2)
	require.Equal(t, e, c.note(e, http.StateNew), "all are being answered")
	c.answering(d, -1)
	require.Equal(t, e, c.note(e, http.StateNew), "one answer on a connection is over, the other is not")
	c.answering(b, -1)
	require.Equal(t, b, c.note(e, http.StateNew))
	require.Nil(t, c.note(b, http.StateClosed))
	require.Len(t, c.here, 3)
	for _, conn := range []net.Conn{busy, d, e} {
		require.Nil(t, c.note(conn, http.StateClosed))
	}
	require.Empty(t, c.here)
}
