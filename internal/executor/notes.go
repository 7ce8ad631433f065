package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

const (
	// maxClients is how many connections of one run are served at once; more wait.
	maxClients = 8
	// clientTime is how long a client may take to send a request, and to take the answer.
	clientTime = 10 * time.Second
	// maxReport bounds the JSON of a progress report, in bytes.
	maxReport = 16 << 10
)

// notebook is what an attempt of a [cronrunner.Run] writes down of itself.
type notebook interface {
	Progress(done, total int64, message string)
	Checkpoint(ctx context.Context, v any) error
	Restore(ctx context.Context, v any) (bool, error)
}

// noteServer is what a command talks to on its socket: it takes progress and checkpoints of one attempt. It
// outlives the attempt's context, so that a command that is stopped can still write its last checkpoint.
type noteServer struct {
	path string

	run    notebook
	server *http.Server
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup // what close waits for
}

// serveNotes serves until close, whatever becomes of ctx. wait is how long a client may take for its request.
func serveNotes(ctx context.Context, run notebook, listener *net.UnixListener, wait time.Duration, log *zap.Logger) *noteServer {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &noteServer{path: listener.Addr().String(), run: run, cancel: cancel}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /checkpoint", s.lastCheckpoint)
	mux.HandleFunc("POST /checkpoint", s.takeCheckpoint)
	mux.HandleFunc("POST /progress", s.takeProgress)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, "there are GET and POST /checkpoint, and POST /progress")
	})
	errorLog, _ := zap.NewStdLogAt(log, zapcore.DebugLevel) // of clients that went away, mostly
	s.server = &http.Server{
		Handler:           s.whileOpen(mux),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: wait,
		ReadTimeout:       wait,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          errorLog,
	}
	s.server.SetKeepAlivesEnabled(false) // so that nobody holds one of the few connections
	limited := newLimitedListener(listener, maxClients)
	s.serving.Go(func() { s.server.Serve(limited) }) //nolint:errcheck // it ends by close
	return s
}

// whileOpen keeps requests out that come when the attempt is over.
func (s *noteServer) whileOpen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		open := !s.closed
		if open {
			s.serving.Add(1)
		}
		s.mu.Unlock()
		if !open {
			answer(w, http.StatusConflict, "the run is over")
			return
		}
		defer s.serving.Done()
		next.ServeHTTP(w, r)
	})
}

// close ends the server and removes the socket. When it returns nothing more is written of the run.
func (s *noteServer) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.server.Close() // of connections that are gone
	s.serving.Wait()
}

func (s *noteServer) takeProgress(w http.ResponseWriter, r *http.Request) {
	body, ok := readRequest(w, r, maxReport)
	if !ok {
		return
	}
	report, err := parseReport(body)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	s.run.Progress(report.Done, report.Total, report.Message)
	answer(w, http.StatusNoContent, "")
}

// report is how far a run is, as commands and webhooks say it.
type report struct {
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`
	Message string `json:"message"`
}

func parseReport(text []byte) (r report, err error) {
	if err := strictly(text, &r); err != nil {
		return r, fmt.Errorf(`progress is JSON such as {"done": 5, "total": 10, "message": "invoices"}: %w`, err)
	}
	if r.Done < 0 || r.Total < 0 {
		return r, errors.New("done and total are not negative")
	}
	return r, nil
}

// strictly decodes one JSON value that has only the fields of v: a field with a typing error would be lost.
func strictly(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("there is nothing")
		}
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}

func (s *noteServer) takeCheckpoint(w http.ResponseWriter, r *http.Request) {
	body, ok := readRequest(w, r, state.MaxCheckpoint)
	if !ok {
		return
	}
	value, err := checkpointOf(string(body))
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	switch err := s.run.Checkpoint(r.Context(), value); {
	case err == nil:
		answer(w, http.StatusNoContent, "")
	case errors.Is(err, cronrunner.ErrCheckpointTooLarge):
		answer(w, http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, cronrunner.ErrNotOwner):
		answer(w, http.StatusConflict, err.Error())
	default:
		answer(w, http.StatusServiceUnavailable, err.Error())
	}
}

func (s *noteServer) lastCheckpoint(w http.ResponseWriter, r *http.Request) {
	var value json.RawMessage
	if _, err := s.run.Restore(r.Context(), &value); err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if value == nil {
		answer(w, http.StatusNotFound, "there is no checkpoint")
		return
	}
	text, err := textOf(value)
	if err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	setWriteDeadline(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text) //nolint:errcheck // the client is gone then
}

// readRequest is the body, of at most limit bytes; otherwise the request was answered. The deadline for the
// client ends here: what follows takes as long as etcd does.
func readRequest(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		answer(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("at most %d bytes are allowed; keep the data elsewhere and a reference here", limit))
		return nil, false
	}
	if err == nil {
		err = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	if err != nil {
		answer(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
		return nil, false
	}
	return body, true
}

func answer(w http.ResponseWriter, code int, text string) {
	setWriteDeadline(w)
	if text == "" {
		w.WriteHeader(code)
		return
	}
	http.Error(w, text, code)
}

func setWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(clientTime)) //nolint:errcheck // sockets have deadlines
}

// limitedListener accepts no more connections than are allowed at once.
type limitedListener struct {
	net.Listener
	free   chan struct{} // holds a token for each connection that there is
	closed chan struct{}
	once   sync.Once
}

func newLimitedListener(l net.Listener, limit int) *limitedListener {
	return &limitedListener{Listener: l, free: make(chan struct{}, limit), closed: make(chan struct{})}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.free })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
