//go:build !linux

package etcdtest

import (
	"fmt"
	"net"
)

const reusePort = false

// reserve only finds a free port here: what it would take to keep it differs between systems. Somebody
// else may take it before etcd does, and Run then tries again with another.
func reserve() (number int, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, nil, fmt.Errorf("find a free port: %T is no TCP address", l.Addr())
	}
	return address.Port, func() {}, nil
}
