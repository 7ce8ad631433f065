package etcdtest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reusePort must be set on etcd's listeners, for them to share a port with its reservation.
const reusePort = true

// reserve binds a socket to a free port and never listens on it. The kernel then gives the port to
// nobody else, neither to a listener nor as the local end of a connection, while etcd, whose listener
// also sets SO_REUSEPORT, can take it and leave it as often as it likes. A client that dials while
// etcd is down is refused, as the bound socket accepts nothing (socket(7), SO_REUSEPORT).
func reserve() (number int, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: socket: %w", err)
	}
	number, err = bindLoopback(fd)
	if err != nil {
		_ = unix.Close(fd)
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	return number, func() { _ = unix.Close(fd) }, nil
}

func bindLoopback(fd int) (number int, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("SO_REUSEPORT: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("bind: %w", err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("getsockname: %w", err)
	}
	ipv4, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("getsockname: %T is no IPv4 address", address)
	}
	return ipv4.Port, nil
}
