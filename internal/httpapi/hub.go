package httpapi

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

// Bounds of the events.
const (
	maxClients = 64      // of events at once
	maxWaiting = 256     // revisions that wait for a client; one that is slower is cut off, and may resume
	maxKept    = 2 << 20 // bytes of events that are kept for those who resume
	maxBehind  = 10_000  // revisions that are read again for somebody who resumes
)

// hub is one watch of etcd for all clients of events. It watches while there are clients: an instance that nobody
// looks at reads nothing.
type hub struct {
	store *state.Store

	mu      sync.Mutex
	clients map[*subscriber]struct{}
	watch   *watching // nil when there are no clients
	closed  bool

	watches sync.WaitGroup
}

// watching is one watch, and what it has seen of late.
type watching struct {
	stop context.CancelFunc
	pos  int64    // up to which revision all was seen; 0 when that is not known yet
	base int64    // after which revision all that was seen is kept
	kept []*frame // in order
	size int      // of them, in bytes
}

// subscriber is a client of events.
type subscriber struct {
	job    string      // whose events it wants; "" for all
	after  int64       // the revision that it resumes from; 0 for now
	first  []*frame    // what is to be sent first
	frames chan *frame // closed when the client is cut off
}

func newHub(store *state.Store) *hub {
	return &hub{store: store, clients: make(map[*subscriber]struct{})}
}

var (
	errManyClients = errors.New("as many clients as may follow the events of this instance already")
	errClosing     = errors.New("this instance is stopping")
)

// subscribe begins to collect events for a client. It must unsubscribe.
func (h *hub) subscribe(job string, after int64) (*subscriber, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, &fault.Error{Kind: fault.Unavailable, Err: errClosing, Hint: "another instance"}
	case len(h.clients) >= maxClients:
		return nil, &fault.Error{Kind: fault.Unavailable, Err: errManyClients, Hint: "another instance, or later"}
	}
	c := &subscriber{job: job, after: after, frames: make(chan *frame, maxWaiting)}
	h.clients[c] = struct{}{}
	switch w := h.watch; {
	case w == nil:
		h.begin(after)
	case w.pos == 0: // it is told as soon as that is known
	case after == 0:
		c.first = []*frame{{rev: w.pos}}
	case after < w.base, after > w.pos+maxBehind: // or of another etcd
		c.first = []*frame{{rev: w.pos, reset: true}}
	default:
		for _, f := range w.kept {
			if f.rev > after {
				c.first = append(c.first, f)
			}
		}
	}
	return c, nil
}

// begin watches, after a revision, or from now on.
func (h *hub) begin(after int64) {
	ctx, stop := context.WithCancel(context.Background())
	w := &watching{stop: stop, pos: after, base: after}
	h.watch = w
	h.watches.Go(func() {
		_ = h.store.Tail(ctx, h.store.Keys().Root(), after, maxBehind, state.Tailing{
			Reset:   func(rev int64) { h.reset(w, rev) },
			Changed: func(rev int64, events []*clientv3.Event) { h.changed(w, rev, events) },
		})
	})
}

func (h *hub) unsubscribe(c *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
	if len(h.clients) == 0 && h.watch != nil {
		h.watch.stop()
		h.watch = nil
	}
}

// reset tells the clients that changes may have been lost, unless they have only just begun to listen.
func (h *hub) reset(w *watching, rev int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w != h.watch {
		return
	}
	begun := w.pos != 0
	w.pos, w.base, w.kept, w.size = rev, rev, nil, 0
	for c := range h.clients {
		h.hand(c, &frame{rev: rev, reset: begun || c.after != 0})
	}
}

// changed hands the changes of a revision to the clients.
func (h *hub) changed(w *watching, rev int64, events []*clientv3.Event) {
	f := newFrame(h.store.Keys(), rev, events)
	h.mu.Lock()
	defer h.mu.Unlock()
	if w != h.watch {
		return
	}
	w.pos = rev
	w.kept = append(w.kept, f)
	w.size += f.size()
	for w.size > maxKept {
		w.size -= w.kept[0].size()
		w.base, w.kept = w.kept[0].rev, w.kept[1:]
	}
	for c := range h.clients {
		h.hand(c, f)
	}
}

// hand gives a frame to a client, or cuts it off when it has not taken the last ones: nobody waits for it.
func (h *hub) hand(c *subscriber, f *frame) {
	select {
	case c.frames <- f:
	default:
		close(c.frames)
		delete(h.clients, c)
	}
}

// close cuts all clients off, and waits for the watch to end.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	if h.watch != nil {
		h.watch.stop()
		h.watch = nil
	}
	for c := range h.clients {
		close(c.frames)
		delete(h.clients, c)
	}
	h.mu.Unlock()
	h.watches.Wait()
}
