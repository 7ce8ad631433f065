package etcdtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

const acceptRetry = 10 * time.Millisecond

// Direction is one of the two ways through a [Proxy].
type Direction int

const (
	// ToServer is the way of requests.
	ToServer Direction = iota
	// ToClient is the way of answers, and of the events of a watch.
	ToClient
)

// Proxy is a TCP proxy before a server, to disturb its network. It listens on a loopback port of its
// own. Faults add up until [Proxy.Heal]; each holds for connections made before and after it. All
// methods may be called concurrently.
//
// The proxy connects to the server when it has the first bytes of a client to deliver. That suits
// every protocol in which the client speaks first, as etcd's does.
type Proxy struct {
	target   string
	listener *net.TCPListener

	ctx    context.Context // done when the proxy is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the proxy

	mu      sync.Mutex
	faults  faults
	changed chan struct{} // closed when faults changes
	links   map[*link]struct{}
}

type faults struct {
	cut    bool
	paused [2]bool // by Direction
	delay  time.Duration
}

// NewProxy starts a proxy before the target, an endpoint as [Member.Endpoint] gives it, and closes it
// when the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := RunProxy(target)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// RunProxy is [NewProxy] without a test. The caller closes the proxy.
func RunProxy(target string) (*Proxy, error) {
	_, address, isURL := strings.Cut(target, "://")
	if !isURL {
		address = target
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("etcdtest: proxy to %q: want host:port: %w", target, err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("etcdtest: proxy to %s: %w", target, err)
	}
	p := &Proxy{
		target: address, listener: listener,
		changed: make(chan struct{}), links: make(map[*link]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Endpoint is the proxy's address, "127.0.0.1:port". It stays the same for life.
func (p *Proxy) Endpoint() string { return p.listener.Addr().String() }

// Cut closes all connections, with what they hold, and from then on each new one as soon as it is made.
func (p *Proxy) Cut() {
	p.change(func(f *faults) { f.cut = true })
	for _, l := range p.live() {
		l.reset()
	}
}

// Pause lets nothing through any more, in the given directions or, when none is given, in both. It is
// a black hole, not a cut: connections stay open, new ones are accepted, and neither side hears of
// the other, not even that it has closed its end. What is sent meanwhile is held (up to 256 reads a
// direction of a connection, then the sender's own buffers fill) and is delivered by Heal.
func (p *Proxy) Pause(directions ...Direction) {
	if len(directions) == 0 {
		directions = []Direction{ToServer, ToClient}
	}
	p.change(func(f *faults) {
		for _, d := range directions {
			f.paused[d] = true
		}
	})
}

// Resume ends a Pause in one direction: what was held there is delivered.
func (p *Proxy) Resume(d Direction) {
	p.change(func(f *faults) { f.paused[d] = false })
}

// Delay holds everything back for d, each way, so that a round trip takes 2d longer. It makes nothing
// slower but later, and keeps the order. 0, or less, takes it away.
func (p *Proxy) Delay(d time.Duration) {
	p.change(func(f *faults) { f.delay = d })
}

// Heal ends all faults: what was held is delivered at once, and new connections work again. What Cut
// has closed stays closed.
func (p *Proxy) Heal() {
	p.change(func(f *faults) { *f = faults{} })
}

// Close closes the proxy and all its connections and returns when the last of its goroutines has
// ended. Calling it again does nothing.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close()
	for _, l := range p.live() {
		l.close()
	}
	p.wg.Wait()
}

func (p *Proxy) change(f func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

// state is the faults and what tells their next change.
func (p *Proxy) state() (faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults, p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		if err == nil {
			p.serve(client)
			continue
		}
		// Closed, or else out of file descriptors, which may pass.
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(acceptRetry):
		}
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	l := newLink(p, client)
	if !p.add(l) {
		l.reset()
		return
	}
	p.wg.Go(func() {
		defer p.remove(l)
		l.run()
	})
}

// add is refused when the link would escape a Cut or a Close that went before it.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.cut || p.ctx.Err() != nil {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) live() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}
