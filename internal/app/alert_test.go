package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// A job of a file that fails: its alert's webhook is told once though it is away at first, and nothing of its address
// but the host, and nothing of its headers, is in etcd, the log or the metrics.
func TestAlertsOfAJobsFile(t *testing.T) {
	t.Setenv("ALERT_TEST_TOKEN", "s3cret-in-env")
	type got struct {
		header http.Header
		url    string
		body   string
	}
	var mu sync.Mutex
	var calls []got
	heard := func() []got {
		mu.Lock()
		defer mu.Unlock()
		return calls
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, got{r.Header, r.URL.String(), string(body)})
		if len(calls) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, r.URL, r.Header)
		}
	}))
	t.Cleanup(receiver.Close)
	i := begin(t, embed1(t, fmt.Sprintf(`
defaults:
  alert: {webhook: "%s/services/s3cret-in-path?token=s3cret-in-query", headers: {Authorization: {env: ALERT_TEST_TOKEN}}}
jobs:
  bad: {schedule: "* * * * * *", shell: "exit 7", alert: {after_failures: 2}}
`, receiver.URL)))
	require.Equal(t, "bad", i.log.await(t, "alert told").ContextMap()["job"])
	require.Len(t, heard(), 2)
	first, second := heard()[0], heard()[1]
	require.Equal(t, "/services/s3cret-in-path?token=s3cret-in-query", second.url)
	require.Equal(t, "s3cret-in-env", second.header.Get("Authorization"))
	require.Equal(t, first.header.Get("Idempotency-Key"), second.header.Get("Idempotency-Key"))
	var n cronrunner.Notice
	require.NoError(t, json.Unmarshal([]byte(second.body), &n))
	require.Equal(t, "default/bad/failing/"+n.Run, second.header.Get("Idempotency-Key"))
	require.Equal(t, state.AlertFailing, n.Kind)
	require.GreaterOrEqual(t, n.Count, int64(2))
	require.Equal(t, "exit status 7", n.Error)
	require.Contains(t, n.Text, "job bad is failing: ")
	require.Contains(t, first.body, `"run":"`+n.Run+`"`)

	require.Eventually(t, func() bool {
		_, text := i.ask("/metrics")
		return !slices.ContainsFunc([]string{
			`etcdcron_job_alerting{job="bad",kind="failing"} 1`, `etcdcron_alerts_total{job="bad",kind="failing"} 1`,
			`etcdcron_alert_deliveries_total{result="told"} 1`, `etcdcron_alert_deliveries_total{result="failed"} 1`,
		}, func(line string) bool { return !strings.Contains(text, "\n"+line+"\n") })
	}, patience, 50*time.Millisecond)
	_, text := i.ask("/metrics")
	require.NotContains(t, text, "s3cret")

	client, err := etcdtest.NewClient(i.etcd.endpoint)
	require.NoError(t, err)
	defer client.Close()
	all, err := client.Get(t.Context(), "/", clientv3.WithPrefix())
	require.NoError(t, err)
	require.NotEmpty(t, all.Kvs)
	for _, kv := range all.Kvs {
		require.NotContains(t, string(kv.Key)+string(kv.Value), "s3cret")
	}
	require.NoError(t, i.end())
	for _, e := range i.log.All() {
		require.NotContains(t, fmt.Sprint(e.Message, e.ContextMap()), "s3cret")
	}
	require.Len(t, heard(), 2)
}
