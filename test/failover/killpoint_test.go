package failover

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// A leader is killed at each step of a run's life. The network between it and etcd is what holds it at a step:
// what it sends is not delivered, or what etcd answers. Each time the run ends in one record.
func TestALeaderKilledAtEachStepOfARun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		reach    func(k *killing) // the step at which it is killed
		attempts int
		starts   int // of the command
		ends     int
	}{
		{"before the claim", (*killing).beforeTheClaim, 1, 1, 1},
		{"after the claim", (*killing).afterTheClaim, 2, 1, 1},
		{"in the middle", (*killing).inTheMiddle, 2, 2, 1},
		{"after its checkpoint", (*killing).afterItsCheckpoint, 2, 2, 1},
		{"before the finish", (*killing).beforeTheFinish, 2, 2, 2},
		{"during the finish", (*killing).duringTheFinish, 1, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			k := newKilling(t)
			tc.reach(k)
			k.victim.signal(syscall.SIGKILL)
			<-k.victim.done
			k.touch("go")
			k.serve("successor")
			k.leader(k.term)
			k.eventually("the run does not end", func() bool { r := k.record(); return r != nil && r.Status.Final() })
			k.eventually("the status is behind", func() bool {
				def, err := k.store.Job(t.Context(), "billing")
				return err == nil && def.View.Status.Running+def.View.Status.Pending == 0
			})
			k.stopAll()
			r := k.record()
			require.Equal(t, state.Succeeded, r.Status, r.Error)
			require.Equal(t, tc.attempts, r.Attempt)
			require.Len(t, r.Attempts, tc.attempts-1)
			lines := strings.Join(k.lines("did"), " ")
			require.Equal(t, tc.starts, strings.Count(lines, "start"), lines)
			require.Equal(t, tc.ends, strings.Count(lines, "end"), lines)
			if len(k.lines("saved")) > 0 {
				require.Contains(t, lines, "start-2-7", "it goes on from the checkpoint")
			}
			require.Len(t, k.history("billing"), 1)
			def, err := k.store.Job(t.Context(), "billing")
			require.NoError(t, err)
			require.Equal(t, int64(1), def.View.Status.SucceededTotal)
			require.Equal(t, int64(tc.attempts-1), def.View.Status.RecoveredTotal)
			k.requireNothingLeft()
		})
	}
}

// killing is a leader behind a proxy, and a job that is due once.
type killing struct {
	*bench

	proxy  *etcdtest.Proxy
	victim *process
	due    time.Time
	term   int64
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	k := &killing{due: time.Now().UTC().Truncate(time.Second).Add(12 * time.Second)}
	k.bench = newBench(t, fmt.Sprintf(`
jobs:
  billing:
    schedule: "@at %[1]s"
    shell: |
      echo "start-$ETCDCRON_ATTEMPT-$ETCDCRON_CHECKPOINT" >> did
      while [ ! -e go ]; do
        sleep 0.05
        if [ -e save ]; then rm save; %[2]s checkpoint 7 && echo saved >> saved; fi
      done
      echo "end-$ETCDCRON_ATTEMPT" >> did
    lock_ttl: 5s
    grace: 1s
  # so that the lease of such locks is there by then
  warm: {schedule: "* * * * * *", command: ["true"], lock_ttl: 5s, grace: 1s}
`, k.due.Format(time.RFC3339), binary))
	k.proxy = etcdtest.NewProxy(t, k.cluster.Endpoints()[0])
	k.victim = k.serveAt(k.proxy.Endpoint(), "victim")
	_, info := k.leader(0)
	k.term = info.Term
	k.waitSucceeded("warm", 1)
	require.Less(t, time.Now(), k.due.Add(-time.Second), "the machine is too slow for this test")
	return k
}

// record is the record of the run; nil when there is none.
func (k *killing) record() *state.Run {
	r, _, err := k.store.Run(k.t.Context(), "billing", state.RunID(k.due))
	if err != nil {
		return nil
	}
	return &r
}

func (k *killing) beforeTheClaim() {
	k.until(k.due.Add(-500 * time.Millisecond))
	k.proxy.Pause(etcdtest.ToServer)
	k.until(k.due.Add(500 * time.Millisecond)) // the claim is on its way
	require.Nil(k.t, k.record())
}

func (k *killing) afterTheClaim() {
	k.until(k.due.Add(-500 * time.Millisecond))
	k.proxy.Pause(etcdtest.ToClient)
	k.eventually("no claim", func() bool { return k.record() != nil })
	require.Empty(k.t, k.lines("did"))
}

func (k *killing) inTheMiddle() {
	k.eventually("the command does not start", func() bool { return len(k.lines("did")) == 1 })
}

func (k *killing) afterItsCheckpoint() {
	k.inTheMiddle()
	k.touch("save")
	k.eventually("the checkpoint is not acknowledged", func() bool { return len(k.lines("saved")) == 1 })
}

func (k *killing) beforeTheFinish() {
	k.inTheMiddle()
	k.proxy.Pause(etcdtest.ToServer)
	k.touch("go")
	k.eventually("the command does not end", func() bool { return len(k.lines("did")) == 2 })
	k.until(time.Now().Add(300 * time.Millisecond)) // the finish is on its way
	require.Equal(k.t, state.Running, k.record().Status)
}

func (k *killing) duringTheFinish() {
	k.inTheMiddle()
	k.proxy.Pause(etcdtest.ToClient)
	k.touch("go")
	k.eventually("no finish", func() bool { return k.record().Status.Final() })
}
