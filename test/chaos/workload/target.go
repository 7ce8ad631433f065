package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// writeLimit is how long a write to the target may take.
const writeLimit = time.Second

// Target is what jobs write to: it remembers the greatest fencing token that it has seen, and refuses smaller ones. It
// is in the process of the test, and notes in which order it decided. Safe for concurrent use.
type Target struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	greatest map[string]int64
	events   []checker.Event
	open     map[net.Conn]struct{}
}

// TargetPath is where the target of a test listens that has its files in dir.
func TargetPath(dir string) string { return filepath.Join(dir, "target") }

// OpenTarget begins to listen in dir.
func OpenTarget(dir string) (*Target, error) {
	listener, err := net.Listen("unix", TargetPath(dir))
	if err != nil {
		return nil, err
	}
	t := &Target{listener: listener, greatest: make(map[string]int64), open: make(map[net.Conn]struct{})}
	t.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			t.serving.Go(func() { t.serve(conn) })
		}
	})
	return t, nil
}

func (t *Target) serve(conn net.Conn) {
	t.mu.Lock()
	t.open[conn] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.open, conn)
		t.mu.Unlock()
		_ = conn.Close()
	}()
	_ = conn.SetDeadline(time.Now().Add(writeLimit)) // one that is frozen holds nobody up
	var w write
	if json.NewDecoder(conn).Decode(&w) == nil {
		_, _ = fmt.Fprintln(conn, t.decide(w)) // JSON
	}
}

// write is what the target is asked for.
type write struct {
	Fence string        `json:"fence"` // what the tokens are compared in
	Event checker.Event `json:"event"`
}

func (t *Target) decide(w write) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Event.Kind, w.Event.Mono, w.Event.Wall = checker.Write, Mono(), time.Now().UTC()
	w.Event.Accepted = w.Event.Token >= t.greatest[w.Fence]
	if w.Event.Accepted {
		t.greatest[w.Fence] = w.Event.Token
	}
	t.events = append(t.events, w.Event)
	return w.Event.Accepted
}

// Close closes the target and returns what it has decided.
func (t *Target) Close() []checker.Event {
	_ = t.listener.Close()
	t.mu.Lock()
	for conn := range t.open {
		_ = conn.Close()
	}
	t.mu.Unlock()
	t.serving.Wait()
	return t.events
}

// errStale is a write that the target has refused.
var errStale = errors.New("the target has seen a greater token")

// writeTo writes to the target in dir.
func writeTo(dir, fence string, e checker.Event) error {
	conn, err := net.DialTimeout("unix", TargetPath(dir), writeLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(write{Fence: fence, Event: e}); err != nil {
		return err
	}
	var accepted bool
	if err := json.NewDecoder(conn).Decode(&accepted); err != nil {
		return err
	}
	if !accepted {
		return errStale
	}
	return nil
}
