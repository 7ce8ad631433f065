package httpapi

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// served is a server on an etcd without anything in it, changed before it serves.
func served(t *testing.T, change func(*Server)) (*Server, string) {
	t.Helper()
	client := etcdtest.Start(t).Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	s := New(Config{Metrics: prometheus.NewRegistry()})
	s.Connect(client, state.NewStore(client, keys, state.StoreConfig{}))
	change(s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Shutdown(t.Context())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return s, "http://" + ln.Addr().String()
}

// A stream goes on for longer than a request, or an answer, may take.
func TestAStreamOutlivesTheTimeouts(t *testing.T) {
	t.Parallel()
	s, url := served(t, func(s *Server) { s.http.ReadTimeout, s.http.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond })
	resp, err := http.Get(url + "/v1/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	require.True(t, lines.Scan())
	b := s.etcd.Load()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range 10 {
		<-tick.C
		_, err := b.client.Put(t.Context(), b.store.Keys().Control("a"), fmt.Sprintf(`{"reason":"r%d"}`, i))
		require.NoError(t, err)
		if i == 0 {
			continue // the watch may begin after the first one
		}
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"r%d"`, i)) {
		}
		require.NoError(t, lines.Err())
		require.Contains(t, lines.Text(), fmt.Sprintf(`"r%d"`, i))
	}
}

// Who finds all places taken waits a moment, and is told to come again; probes and changes have no part in that.
func TestAllPlacesTaken(t *testing.T) {
	t.Parallel()
	s, url := served(t, func(*Server) {})
	get := func(path string) (status int, after string) {
		resp, err := http.Get(url + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode, resp.Header.Get("Retry-After")
	}
	for range maxReads {
		s.reading <- struct{}{}
	}
	status, after := get("/v1/jobs")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "1", after)
	status, _ = get("/livez")
	require.Equal(t, http.StatusOK, status)
	post, err := http.Post(url+"/v1/jobs/none/pause", "", http.NoBody)
	require.NoError(t, err)
	require.NoError(t, post.Body.Close())
	require.Equal(t, http.StatusNotFound, post.StatusCode)
	<-s.reading
	status, _ = get("/v1/jobs")
	require.Equal(t, http.StatusOK, status)
}
