package size

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/test/command"
)

const (
	askers      = 20
	perAsker    = 30
	servingTime = 2 * time.Minute // for an instance to be ready
)

// BenchmarkServing measures an instance that answers over HTTP on 10,000 jobs and 1,000,000 records: how long an answer
// takes with 20 asking at once, and how much memory the process has ever had. It follows, so the etcd and the jobs are
// not its own:
//
//	go test ./test/size -run '^$' -bench Serving -benchtime 1x
func BenchmarkServing(b *testing.B) {
	etcd, client, keys := seededEtcd(b, large)
	_, err := client.Put(b.Context(), keys.Candidates()+"1", `{"instance":"somebody"}`) // who leads does nothing here
	require.NoError(b, err)
	bin, err := command.Build("../..", filepath.Join(b.TempDir(), "bin"))
	require.NoError(b, err)
	jobs := filepath.Join(b.TempDir(), "jobs.yaml")
	require.NoError(b, os.WriteFile(jobs, []byte("jobs:\n  mine: {schedule: '0 0 1 1 *', command: [\"true\"]}\n"), 0o600))
	at := freeAddress(b)
	serve := exec.Command(bin, "serve", "-c", jobs, "--listen", at, "--endpoints", etcd)
	require.NoError(b, serve.Start())
	b.Cleanup(func() {
		_ = serve.Process.Signal(os.Interrupt)
		_ = serve.Wait()
	})
	require.Eventually(b, func() bool { code, _ := get("http://" + at + "/v1/leader"); return code == http.StatusOK }, servingTime, 100*time.Millisecond)
	idle := peak(b, serve.Process.Pid)

	for _, path := range []string{
		"/v1/jobs?limit=100", "/v1/jobs?limit=1000&failing=true", "/v1/jobs/" + Name(4711), "/v1/jobs/" + Name(4711) + "/runs?limit=100", "/", "/jobs/" + Name(4711),
	} {
		b.Run(path, func(b *testing.B) {
			answered, refused := 0, 0
			for b.Loop() {
				answered, refused = ask("http://" + at + path)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*perAsker), "ms/answer")
			b.ReportMetric(float64(answered), "answered")
			b.ReportMetric(float64(refused), "refused")
			b.ReportMetric(float64(idle)/1024, "MB-before")
			b.ReportMetric(float64(peak(b, serve.Process.Pid))/1024, "MB-peak")
		})
	}
}

// ask has many ask for the same at once.
func ask(url string) (answered, refused int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for range perAsker {
				code, err := get(url)
				mu.Lock()
				if err == nil && code == http.StatusOK {
					answered++
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return answered, refused
}

func get(url string) (code int, err error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer l.Close()
	return l.Addr().String()
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process has had, in KiB.
func peak(tb testing.TB, pid int) int {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(tb, err)
	found := highWater.FindSubmatch(status)
	require.NotNil(tb, found, "only Linux says that")
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(tb, err)
	return kib
}
