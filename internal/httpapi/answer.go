package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

const (
	answerTimeout = 10 * time.Second // of all that a request asks of etcd
	placeTimeout  = time.Second      // how long a request waits for its place
	maxReads      = 4                // requests at once that read etcd
	maxChanges    = 8                // and that write
	maxBody       = 64 << 10
)

// call is a request that is being answered.
type call struct {
	*http.Request

	etcd *backend
	who  caller
	by   string // who asks as it is put on record; "" before the body was read
	now  time.Time
	body io.Reader
}

// outcome is what came of a change.
type outcome struct {
	status   int
	body     any
	location string // of what was asked for; "" for nothing
}

// read answers with what is in etcd.
func (s *Server) read(h func(ctx context.Context, c *call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body any
		err := s.call(w, r, s.reading, func(ctx context.Context, c *call) (err error) {
			body, err = h(ctx, c)
			return err
		})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		reply(w, http.StatusOK, body)
	}
}

// change has something asked for, and says in the log by whom.
func (s *Server) change(h func(ctx context.Context, c *call) (outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var done outcome
		by := callerOf(r).String()
		err := s.call(w, r, s.asking, func(ctx context.Context, c *call) (err error) {
			done, err = h(ctx, c)
			by = cmp.Or(c.by, by)
			return err
		})
		log := s.log.With(zap.String("path", r.URL.Path), zap.String("by", by))
		if err != nil {
			log.Info("a change was asked for over HTTP, and refused", zap.Error(err))
			s.fail(w, r, err)
			return
		}
		log.Info("a change was asked for over HTTP")
		if done.location != "" {
			w.Header().Set("Location", done.location)
		}
		reply(w, done.status, done.body)
	}
}

// call answers a request in one of places, within the time that there is for it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, places chan struct{}, h func(ctx context.Context, c *call) error) error {
	b := s.etcd.Load()
	if b == nil {
		return errStarting
	}
	// All of the body is read before anything else, so that a slow one keeps nobody waiting.
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	if !take(ctx, places) {
		return &fault.Error{Kind: fault.Unavailable, Err: errBusy, Hint: "try again, and less often"}
	}
	defer func() { <-places }()
	return h(ctx, &call{Request: r, etcd: b, who: callerOf(r), now: time.Now(), body: body})
}

var errBusy = errors.New("this instance has too many requests to answer at the moment")

// take waits a moment for a place.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(placeTimeout)
	defer wait.Stop()
	select {
	case places <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

// job is the job that the path names.
func (c *call) job() (string, error) {
	name := c.PathValue("job")
	return name, state.CheckJobName(name)
}

// noted is what every change may say of itself.
type noted struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// maxBy is how long the name may be that a client gives, in bytes, so that who it really was is not cut.
const maxBy = 256

// note is who asks, and why: whom the client names, and what is known of the client itself.
func (c *call) note(n noted) steer.Note {
	c.by = c.who.String()
	if n.By != "" {
		c.by = state.CutHead(n.By, maxBy) + " (" + c.by + ")"
	}
	return steer.Note{By: c.by, Reason: n.Reason}
}

// decode reads the JSON of the request's body, strictly. Without a body there is nothing to read.
func (c *call) decode(into any) error {
	dec := json.NewDecoder(c.body)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("there is more than one JSON value")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it says so in Go's words
		field := strings.TrimPrefix(wrong.Field, "noted.") // which is embedded
		err = fmt.Errorf("%s may not be a JSON %s", cmp.Or(field, "all of it"), wrong.Value)
	}
	return &fault.Error{
		Kind: fault.BadInput, Err: errors.New("the body cannot be read: " + err.Error()), Hint: "GET /v1/openapi.yaml says what it may hold",
	}
}
