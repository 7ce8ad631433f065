package etcdtest

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPortIsOursFromReservationToRelease(t *testing.T) {
	t.Parallel()
	p, err := newPort()
	require.NoError(t, err)

	_, err = net.Listen("tcp", p.address())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = net.Dial("tcp", p.address())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	p.release()
	l, err := net.Listen("tcp", p.address())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestReservedPortsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 200 {
		p, err := newPort()
		require.NoError(t, err)
		defer p.release()
		require.False(t, seen[p.number])
		seen[p.number] = true
	}
}
