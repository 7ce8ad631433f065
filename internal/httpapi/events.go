package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

const (
	eventTimeout = 10 * time.Second // how long a client may take for what is sent to it at once
	heartbeat    = 15 * time.Second
	maxStream    = time.Hour       // then the client connects again, and shows its token anew
	retryHint    = 2 * time.Second // after which a client is to connect again
)

// events sends what changes, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html),
// until the client goes.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	b := s.etcd.Load()
	if b == nil {
		s.fail(w, r, errStarting)
		return
	}
	job, after, err := resumption(r)
	var sub *subscriber
	if err == nil {
		sub, err = b.hub.subscribe(job, after)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer b.hub.unsubscribe(sub)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep it back
	if r.Method == http.MethodHead {
		return
	}
	out := &stream{w: w, control: http.NewResponseController(w), job: job, last: after}
	fmt.Fprintf(&out.text, ": events of etcdcron\nretry: %d\n\n", retryHint.Milliseconds())
	s.follow(r, sub, out)
}

// resumption is what a client of events wants: of which job, and after which revision.
func resumption(r *http.Request) (job string, after int64, err error) {
	q := queryOf(&call{Request: r})
	job = q.text("job")
	if err := q.end(); err != nil {
		return "", 0, err
	}
	if job != "" {
		if err := state.CheckJobName(job); err != nil {
			return "", 0, err
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil || after < 1 {
			return "", 0, &fault.Error{
				Kind: fault.BadInput, Err: errors.New("Last-Event-ID " + strconv.Quote(last) + " is no id of an event"), Hint: "without it, events are told from now on",
			}
		}
	}
	return job, after, nil
}

// follow sends a subscriber's frames until it is cut off, the client has gone, or the server stops.
func (s *Server) follow(r *http.Request, sub *subscriber, out *stream) {
	for _, f := range sub.first {
		out.add(f)
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	end := time.NewTimer(maxStream)
	defer end.Stop()
	for out.send() {
		select {
		case f, ok := <-sub.frames:
			if !ok {
				return
			}
			out.add(f)
			for range len(sub.frames) { // a burst is sent at once
				if f, ok := <-sub.frames; ok {
					out.add(f)
				}
			}
		case <-beat.C:
			out.beat()
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-s.closing:
			return
		}
	}
}

// stream is what is sent to one client.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	job     string
	last    int64 // revision of the last frame, sent or of no interest
	text    bytes.Buffer
}

// add takes in a frame, unless the client has had it.
func (o *stream) add(f *frame) {
	if f.rev <= o.last && !f.reset {
		return
	}
	first := o.last == 0
	o.last = f.rev
	if f.write(&o.text, o.job); first && !f.reset {
		o.beat() // from here on the client can resume
	}
}

// beat tells a client that the connection lives, and up to where it has had everything.
func (o *stream) beat() {
	o.text.WriteString(":\n")
	if o.last > 0 {
		fmt.Fprintf(&o.text, "id: %d\n", o.last)
	}
	o.text.WriteString("\n")
}

// send writes what was collected. It reports false when the client has gone, or does not take it.
func (o *stream) send() bool {
	if o.text.Len() == 0 {
		return true
	}
	// The server's own limit is for an answer that ends.
	_ = o.control.SetWriteDeadline(time.Now().Add(eventTimeout)) // an error is of a connection that has gone
	_, err := o.w.Write(o.text.Bytes())
	o.text.Reset()
	return err == nil && o.control.Flush() == nil
}
