package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/test/chaos/workload"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// seat is the place of an instance: one process after the other, behind proxies of its own. Its methods may be called
// concurrently.
type seat struct {
	bed     *bed
	name    string
	space   *space
	proxies []*etcdtest.Proxy // one before each member

	mu    sync.Mutex
	lives int
	proc  *process // nil before the first
}

// process is one life of an instance.
type process struct {
	id   string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // after done
}

// sit makes a seat, and ends whatever sits there when the test ends.
func (b *bed) sit(sp *space, name string) {
	s := &seat{bed: b, name: name, space: sp}
	for _, member := range b.cluster.Endpoints() {
		s.proxies = append(s.proxies, etcdtest.NewProxy(b.t, member))
	}
	b.seats = append(b.seats, s)
	b.t.Cleanup(func() {
		if p := s.process(); p != nil {
			_ = p.cmd.Process.Kill() // one that was stopped too
			<-p.done
		}
	})
}

func (s *seat) log() string { return s.bed.path(s.name + ".log") }

func (s *seat) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// start starts a process, if none sits there.
func (s *seat) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && s.proc.alive() {
		return nil
	}
	s.lives++
	id := fmt.Sprintf("%s.%d", s.name, s.lives)
	endpoints := make([]string, len(s.proxies))
	for i, p := range s.proxies {
		endpoints[i] = p.Endpoint()
	}
	cmd := exec.Command(worker(), "instance")
	if s.space.name == workload.FileNamespace {
		cmd = exec.Command(binary(), "serve", "-c", s.bed.path("jobs.yaml"), "--namespace", s.space.name, "--endpoints", strings.Join(endpoints, ","),
			"--instance-id", id, "--listen", "127.0.0.1:0", "--leader-ttl", s.bed.settings.ttl.String(), "--drain-timeout", workload.DrainTimeout.String())
	}
	log, err := os.OpenFile(s.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.bed.dir, log, log
	cmd.Env = append(os.Environ(),
		workload.InstanceVariable+"="+id, workload.DirVariable+"="+s.bed.dir, workload.EndpointsVariable+"="+strings.Join(endpoints, ","),
		workload.EndVariable+"="+s.space.end.Format(time.RFC3339), workload.ClockVariable+"="+s.clock(),
		fmt.Sprintf("%s=%d", workload.BurstVariable, s.bed.settings.burst),
		workload.TTLVariable+"="+s.bed.settings.ttl.String(), workload.JobsVariable+"="+s.bed.settings.jobs,
		"ETCDCRON_MUTATION="+s.bed.settings.mutation, "GOTRACEBACK=all")
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{id: id, cmd: cmd, done: make(chan struct{})}
	go func() { p.err = cmd.Wait(); close(p.done) }()
	s.proc = p
	return nil
}

func (s *seat) clock() string { return s.bed.path(s.name + ".clock") }

// setClock sets the wall clock of the instances that sit here.
func (s *seat) setClock(wrong time.Duration) error {
	next := s.clock() + ".next"
	if err := os.WriteFile(next, []byte(wrong.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.clock())
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) } // it may have ended

// heal ends what was done to the seat, but for a process that is gone.
func (s *seat) heal() {
	for _, p := range s.proxies {
		p.Heal()
	}
	s.process().signal(syscall.SIGCONT)
	require.NoError(s.bed.t, s.setClock(0))
}

// stop tells the process to end.
func (s *seat) stop() { s.process().signal(syscall.SIGTERM) }

// ended waits until it has, and returns how.
func (s *seat) ended() error {
	p := s.process()
	select {
	case <-p.done:
		return p.err
	case <-time.After(s.bed.settings.patience):
		p.signal(syscall.SIGQUIT) // its log has the stacks
		return errors.New("it does not end")
	}
}
