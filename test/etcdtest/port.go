package etcdtest

import (
	"net"
	"strconv"
)

// A port of the loopback interface that is ours from newPort to release, also while its member is
// stopped, as far as the operating system lets us keep it (see reserve).
type port struct {
	number  int
	release func()
}

func newPort() (*port, error) {
	number, release, err := reserve()
	if err != nil {
		return nil, err
	}
	return &port{number: number, release: release}, nil
}

func (p *port) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number))
}
