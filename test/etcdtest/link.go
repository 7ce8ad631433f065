package etcdtest

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	connectTimeout = 5 * time.Second

	readSize  = 32 << 10
	heldReads = 256 // see Proxy.Pause
)

// link is one connection through a proxy: a client's, and the one to the server on its behalf.
//
// Each direction is a reader that fills a queue and a writer that empties it. Only the writer minds
// the faults, so that what is sent into a pause is held in order, the end of the stream included.
type link struct {
	proxy  *Proxy
	ctx    context.Context // done when the link is closed
	cancel context.CancelFunc
	queues [2]chan packet // by Direction

	mu     sync.Mutex
	client *net.TCPConn
	server *net.TCPConn // nil until there is something to send to it
}

type packet struct {
	data    []byte // nil: the end of the stream
	arrived time.Time
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	for d := range l.queues {
		l.queues[d] = make(chan packet, heldReads)
	}
	return l
}

// run returns when both directions have ended and all goroutines of the link with them.
func (l *link) run() {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.close()

	wg.Go(func() { l.read(l.client, ToServer) })
	// A server must not see a connection on which nothing comes: etcd cannot stop as long as it has
	// one. So there is none before the first bytes have passed the faults.
	first, ok := l.next(ToServer)
	if !ok || first.data == nil || !l.connect() {
		return
	}
	wg.Go(func() { l.read(l.server, ToClient) })
	var toClient sync.WaitGroup
	toClient.Go(func() {
		if p, ok := l.next(ToClient); ok {
			l.write(l.client, ToClient, p)
		}
	})
	l.write(l.server, ToServer, first)
	toClient.Wait()
}

func (l *link) connect() bool {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		return false
	}
	server, ok := conn.(*net.TCPConn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || l.ctx.Err() != nil {
		_ = conn.Close()
		return false
	}
	l.server = server
	return true
}

func (l *link) read(src *net.TCPConn, d Direction) {
	buf := make([]byte, readSize)
	for {
		n, err := src.Read(buf)
		if n > 0 && !l.hold(d, append([]byte(nil), buf[:n]...)) {
			return
		}
		if err != nil {
			l.hold(d, nil)
			return
		}
	}
}

func (l *link) hold(d Direction, data []byte) bool {
	select {
	case l.queues[d] <- packet{data: data, arrived: time.Now()}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// write delivers p and what comes after it.
func (l *link) write(dst *net.TCPConn, d Direction, p packet) {
	for ok := true; ok; p, ok = l.next(d) {
		if p.data == nil {
			_ = dst.CloseWrite()
			return
		}
		if _, err := dst.Write(p.data); err != nil {
			l.close()
			return
		}
	}
}

// next is the next packet, once the faults let it through; not ok when the link is closed.
func (l *link) next(d Direction) (packet, bool) {
	select {
	case p := <-l.queues[d]:
		return p, l.pass(p, d)
	case <-l.ctx.Done():
		return packet{}, false
	}
}

func (l *link) pass(p packet, d Direction) bool {
	for {
		f, changed := l.proxy.state()
		wait := time.Until(p.arrived.Add(f.delay))
		if !f.paused[d] && wait <= 0 {
			return l.ctx.Err() == nil
		}
		var due <-chan time.Time // never, when paused
		if !f.paused[d] {
			due = time.After(wait)
		}
		select {
		case <-due:
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}

// close ends both connections and makes all goroutines of the link return.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// reset is a close that the client sees as a connection reset, even if it had only just connected.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	l.close()
}
