package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// steady has a job run once a second while do does something to the server: every second has its run. A loaded machine
// may begin them late; that scheduling stood still would be seen. do is given what waits for further runs.
func (s *service) steady(do func(further func())) {
	s.t.Helper()
	second := make(chan time.Time, 1000)
	s.schedule(cronrunner.Job{Name: "steady", Schedule: "@every 1s", Overlap: cronrunner.Overlap{Policy: cronrunner.Queue, Limit: 1000}, Handler: func(_ context.Context, run *cronrunner.Run) error {
		second <- run.ScheduledAt()
		return nil
	}})
	<-second
	do(func() {
		for range 5 {
			<-second
		}
	})
	<-second
	var runs []state.Run
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := s.store.History(s.t.Context(), "steady", cursor, 1000)
		require.NoError(s.t, err)
		for i := range page.Runs {
			if page.Runs[i].Trigger.Scheduled() { // others were triggered
				runs = append(runs, page.Runs[i])
			}
		}
		cursor = page.Next
	}
	require.Greater(s.t, len(runs), 5)
	for i := range runs {
		if i > 0 {
			require.Equal(s.t, time.Second, runs[i-1].ScheduledAt.Sub(runs[i].ScheduledAt), "every second has its run")
		}
		require.NotContains(s.t, []state.RunStatus{state.Missed, state.Skipped}, runs[i].Status, "%+v", runs[i])
		require.Less(s.t, runs[i].LatenessMS, tooLate.Milliseconds())
	}
}

// tooLate is a lateness that no load of the machine explains.
const tooLate = 10 * time.Second

// alone is a service whose own jobs are none: steady brings one.
func alone(t *testing.T) *service {
	t.Helper()
	s := startWithout(t)
	s.listen(nil)
	s.server.Connect(s.client, s.store)
	return s
}

// A body of 1 GiB is refused after 64 KiB of it, one that says how long it is at once.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	s := alone(t)
	s.steady(func(further func()) {
		for _, length := range []int64{1 << 30, -1} {
			body := &counted{left: 1 << 30}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/jobs/steady/trigger", body)
			require.NoError(t, err)
			req.ContentLength = length
			req.Header.Set("Content-Type", "application/json")
			resp, err := s.web.Do(req)
			if err == nil { // or the server has hung up while the client was still sending
				require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
				require.NoError(t, resp.Body.Close())
			}
			require.Less(t, body.sent.Load(), int64(64<<20), "most of it was never taken")
		}
		further()
	})
	require.Equal(t, "body_too_large", s.post("/v1/jobs/steady/trigger", `{"reason": "`+strings.Repeat("x", 64<<10)+`"}`).code(t))
}

// counted is a body without end, but for its length.
type counted struct {
	left int64
	sent atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	if n == 0 {
		return 0, io.EOF
	}
	c.left -= n
	c.sent.Add(n)
	for i := range p[:n] {
		p[i] = ' '
	}
	return int(n), nil
}

// Bodies that never come keep nobody else waiting: no place is taken before all of a body is there.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	s := alone(t)
	s.steady(func(further func()) {
		for range 50 {
			conn, err := net.Dial("tcp", s.url[len("http://"):])
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "POST /v1/jobs/steady/trigger HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
			require.NoError(t, err)
		}
		require.Equal(t, 202, s.post("/v1/jobs/steady/trigger", "{}").status)
		require.Equal(t, 200, s.get("/v1/jobs").status)
		further()
	})
}

// Who is refused and has more to send, so that its connection stays for a while, keeps nobody out.
func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	s := alone(t)
	for range 600 { // more than there may be connections
		conn, err := net.Dial("tcp", s.url[len("http://"):])
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST /nowhere HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 1000\r\n\r\n")
		require.NoError(t, err)
	}
	for range 10 {
		s.web.CloseIdleConnections()
		require.Equal(t, 200, s.get("/livez").status)
	}
}

// idleConnections is how many are opened, if this process may have so many.
const idleConnections = 10_000

// Connections that ask for nothing keep nobody out.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	n := idleConnections
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if most := int(limit.Cur) - 2000; n > most { // with the server's ends of some, and other tests
		n = most
	}
	s := alone(t)
	s.steady(func(further func()) {
		conns := make([]net.Conn, 0, n)
		defer func() {
			for _, conn := range conns {
				_ = conn.Close()
			}
		}()
		for i := range n {
			conn, err := net.Dial("tcp", s.url[len("http://"):])
			require.NoError(t, err)
			conns = append(conns, conn)
			if i%1000 == 0 {
				require.Equal(t, 200, s.get("/v1/jobs").status)
			}
		}
		t.Logf("%d connections without a request", n)
		for range 100 {
			s.web.CloseIdleConnections()
			require.Equal(t, 200, s.get("/v1/jobs").status)
			require.Equal(t, 200, s.get("/livez").status)
		}
		further()
	})
}

// More readers than are answered at once: some are told to come again, and the jobs run on.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	s := alone(t)
	for i := range 500 {
		_, err := s.client.Put(t.Context(), s.store.Keys().Status(fmt.Sprintf("other%03d", i)), "{}")
		require.NoError(t, err)
	}
	s.steady(func(further func()) {
		var readers sync.WaitGroup
		var answered atomic.Int64
		for range 100 {
			readers.Go(func() {
				for range 10 {
					resp, err := s.web.Get(s.url + "/v1/jobs?limit=1000")
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					switch resp.StatusCode {
					case http.StatusOK:
						answered.Add(1)
					case http.StatusServiceUnavailable:
						if resp.Header.Get("Retry-After") == "" {
							t.Error("no Retry-After")
						}
					default:
						t.Error(resp.Status)
					}
				}
			})
		}
		readers.Wait()
		require.Positive(t, answered.Load())
		t.Logf("%d of 1000 answered", answered.Load())
		further()
	})
}
