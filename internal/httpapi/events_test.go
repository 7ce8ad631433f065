package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// told is an event as a client hears it.
type told struct {
	Name, ID string
	Data     struct {
		Job     string          `json:"job"`
		ID      string          `json:"id"`
		Deleted bool            `json:"deleted"`
		Value   json.RawMessage `json:"value"`
	}
}

// listener is a client of events.
type listener struct {
	t      *testing.T
	events chan told
	last   string // the id that a browser would resume from
	stop   func()
}

// listen follows the events until the test ends. It returns when the stream is open.
func (s *service) follow(query, after string) *listener {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events"+query, nil)
	require.NoError(s.t, err)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := s.web.Do(req) //nolint:bodyclose // by the reader below
	require.NoError(s.t, err)
	require.Equal(s.t, 200, resp.StatusCode)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	l := &listener{t: s.t, events: make(chan told, 10_000), last: after, stop: stop}
	done, open := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer close(l.events)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		var ev told
		opened := false
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				ev.Name = value
			case "id":
				ev.ID = value
			case "data":
				if err := json.Unmarshal([]byte(value), &ev.Data); err != nil {
					s.t.Error(err)
				}
				checkEvent(s.t, ev.Name, value)
			case "":
				if ev.Name != "" || ev.ID != "" {
					l.events <- ev
					ev = told{}
				}
				if !opened {
					close(open)
					opened = true
				}
			}
		}
		if !opened {
			close(open)
		}
	}()
	s.t.Cleanup(func() { stop(); <-done })
	<-open
	return l
}

func checkEvent(t *testing.T, name, data string) {
	t.Helper()
	if name == "reset" {
		return
	}
	var value any
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Error(err)
	}
	if err := theContract().doc.Components.Schemas["Event"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%s: %v", data, err)
	}
}

// await returns the first event that matches.
func (l *listener) await(match func(told) bool) told {
	l.t.Helper()
	late := time.After(patience)
	for {
		select {
		case ev, ok := <-l.events:
			require.True(l.t, ok, "the stream has ended")
			if ev.ID != "" {
				l.last = ev.ID
			}
			if match(ev) {
				return ev
			}
		case <-late:
			require.FailNow(l.t, "it does not come")
		}
	}
}

func (l *listener) awaitRun(job string, status state.RunStatus) state.Run {
	l.t.Helper()
	var run state.Run
	l.await(func(ev told) bool {
		return ev.Name == "run" && ev.Data.Job == job && json.Unmarshal(ev.Data.Value, &run) == nil && run.Status == status
	})
	return run
}

func isNamed(name string) func(told) bool { return func(ev told) bool { return ev.Name == name } }
func hasID(ev told) bool                  { return ev.ID != "" }

// A client hears of what changes, and after it was away of what it has missed, at whatever instance.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	all := s.follow("", "")
	all.await(hasID) // from here on it hears everything
	ofBad := s.follow("?job=bad", "")
	ofBad.await(hasID)
	first := s.ask("/v1/jobs/quick/trigger", "")
	require.Equal(t, first.ID, all.await(isNamed("request")).Data.ID)
	require.Equal(t, first.ID, all.awaitRun(quick, state.Running).ID)
	require.Empty(t, all.awaitRun(quick, state.Succeeded).Output, "it is in the record")
	var status state.JobStatus
	require.NoError(t, json.Unmarshal(all.await(isNamed("status")).Data.Value, &status))
	s.post("/v1/jobs/quick/pause", "")
	all.await(isNamed("control"))
	s.post("/v1/jobs/quick/resume", "")
	all.await(hasID)

	failed := s.ask("/v1/jobs/bad/trigger", "")
	ev := ofBad.await(func(ev told) bool { return ev.Name == "run" })
	require.Equal(t, failed.ID, ev.Data.ID, "it hears of its job alone")
	all.awaitRun(bad, state.Failed)

	// Away, and back again: while somebody listens, and after nobody did.
	all.stop()
	second := s.ask("/v1/jobs/quick/trigger", "")
	s.run(quick, second.ID, isOver)
	back := s.follow("", all.last)
	require.Equal(t, second.ID, back.awaitRun(quick, state.Succeeded).ID)
	back.stop()
	ofBad.stop()
	third := s.ask("/v1/jobs/quick/trigger", "")
	s.run(quick, third.ID, isOver)
	again := s.follow("", back.last)
	run := again.awaitRun(quick, state.Succeeded)
	if run.ID == second.ID { // the last revision may come twice
		run = again.awaitRun(quick, state.Succeeded)
	}
	require.Equal(t, third.ID, run.ID)

	require.NoError(t, s.scheduler.Elector().Resign(t.Context()))
	require.True(t, again.await(isNamed("leader")).Data.Deleted)
	again.await(func(ev told) bool {
		return ev.Name == "leader" && strings.Contains(string(ev.Data.Value), "elected_at")
	})
}

// Who comes back after what it has missed was compacted away hears that it has to look anew.
func TestEventsAfterACompaction(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	before, err := s.store.Revision(t.Context())
	require.NoError(t, err)
	s.run(quick, s.ask("/v1/jobs/quick/trigger", "").ID, isOver)
	now, err := s.store.Revision(t.Context())
	require.NoError(t, err)
	_, err = s.client.Compact(t.Context(), now)
	require.NoError(t, err)
	back := s.follow("", strconv.FormatInt(before, 10))
	back.await(isNamed("reset"))
	late := s.follow("", strconv.FormatInt(before, 10))
	late.await(isNamed("reset"))
	odd := s.follow("", "9000000000000000000") // of another etcd
	odd.await(isNamed("reset"))
	s.run(quick, s.ask("/v1/jobs/quick/trigger", "").ID, isOver)
	for _, l := range []*listener{back, late, odd} {
		l.awaitRun(quick, state.Succeeded)
	}
}

// As many clients as may, and no more; a server that stops ends their streams.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for range 64 {
		s.follow("", "")
	}
	got := s.get("/v1/events")
	require.Equal(t, 503, got.status)
	require.Equal(t, "unavailable", got.code(t))
	require.NotEmpty(t, got.header.Get("Retry-After"))
}
