package failover

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// receiver is where alerts are sent to.
type receiver struct {
	mu    sync.Mutex
	taken []string // keys of what was taken, in order
	from  []string // and the instances that sent it
	tried int      // how often something was sent
	take  func(n cronrunner.Notice) bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var n cronrunner.Notice
	if err := json.NewDecoder(req.Body).Decode(&n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried++
	if !r.take(n) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.taken = append(r.taken, req.Header.Get("Idempotency-Key"))
	r.from = append(r.from, n.Instance)
}

func (r *receiver) setTake(take func(n cronrunner.Notice) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take = take
}

func (r *receiver) count() (tried, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried, len(r.taken)
}

// A job fails. The first leader cannot tell it, and is killed; the second tells it, and is killed before it has the
// answer; the third tells it again, under the same key, and after that nobody does.
func TestLeadersKilledWhileTheyTell(t *testing.T) {
	t.Parallel()
	r := &receiver{take: func(cronrunner.Notice) bool { return false }}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	b := newBench(t, fmt.Sprintf(`
jobs:
  bad:
    schedule: "* * * * * *"
    shell: test -e mended
    lock_ttl: 3s
    alert: {after_failures: 2, webhook: "%s/hook"}
`, server.URL))
	for _, id := range []string{"a", "c", "d"} {
		b.serve(id)
	}
	first, info := b.leader(0)
	b.eventually("nothing is told", func() bool { tried, _ := r.count(); return tried > 0 })

	var killed *process
	r.setTake(func(n cronrunner.Notice) bool {
		for _, p := range b.procs {
			if killed == nil && p != first && p.id+"-" == n.Instance[:len(p.id)+1] {
				killed = p
				p.signal(syscall.SIGKILL)
				<-p.done
			}
		}
		return true
	})
	first.signal(syscall.SIGKILL)
	<-first.done
	b.eventually("it is not told again", func() bool { _, taken := r.count(); return taken == 2 })
	second, _ := b.leader(info.Term)
	open := func(st *state.JobStatus) bool { return len(st.Alerting) == 1 && !st.Alerting[0].Untold }
	b.eventually("that it was told is not noted", func() bool {
		def, err := b.store.Job(t.Context(), "bad")
		return err == nil && open(&def.View.Status)
	})
	def, err := b.store.Job(t.Context(), "bad")
	require.NoError(t, err)
	failures := def.View.Status.ConsecutiveFailures
	b.eventually("it does not fail any more", func() bool {
		def, err := b.store.Job(t.Context(), "bad")
		return err == nil && def.View.Status.ConsecutiveFailures >= failures+2
	})
	b.write("mended", "")
	b.eventually("its end is not told", func() bool { _, taken := r.count(); return taken >= 3 })
	b.waitSucceeded("bad", 2)
	b.stopAll()

	require.Len(t, r.taken, 3)
	require.Equal(t, r.taken[0], r.taken[1])
	require.Equal(t, "default/bad/failing/"+def.View.Status.Alerting[0].Run, r.taken[0])
	require.Equal(t, "default/bad/recovered/"+def.View.Status.Alerting[0].Run, r.taken[2])
	require.NotEqual(t, r.from[0], r.from[1])
	require.Contains(t, r.from[0], killed.id+"-")
	require.Contains(t, r.from[1], second.id+"-")
	def, err = b.store.Job(t.Context(), "bad")
	require.NoError(t, err)
	require.Empty(t, def.View.Status.Alerting)
	b.requireNothingLeft()
}
