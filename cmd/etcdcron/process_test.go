package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

const patience = 30 * time.Second

// asCommand is the variable that makes this test binary the command itself.
const asCommand = "ETCDCRON_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	// Tests that were started under nohup ignore SIGHUP, and what they start would too. Caught, it does not
	// pass on.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

// process is the command as a process, with both outputs in one pipe.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	pipe  *os.File
	log   *bufio.Reader
	ended chan error
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(self, args...), pipe: r, log: bufio.NewReader(r), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stdout, p.cmd.Stderr = w, w
	require.NoError(t, p.cmd.Start())
	require.NoError(t, w.Close())
	go func() {
		p.ended <- p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error says that it has ended
		for range p.ended {      // until it has
		}
		_ = r.Close()
	})
	return p
}

// await reads the output up to the line that holds text.
func (p *process) await(text string) string {
	p.t.Helper()
	require.NoError(p.t, p.pipe.SetReadDeadline(time.Now().Add(patience)))
	var before strings.Builder
	for {
		line, err := p.log.ReadString('\n')
		before.WriteString(line)
		require.NoError(p.t, err, "no %q in:\n%s", text, &before)
		if strings.Contains(line, text) {
			return line
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// end waits for the end of the process.
func (p *process) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		require.FailNow(p.t, "it does not end")
		return nil
	}
}

// serving is an etcd and a serve on it that leads, with a TTL that no test waits for.
func serving(t *testing.T, jobs string, args ...string) (*etcdtest.Cluster, *process) {
	t.Helper()
	etcd := etcdtest.Start(t)
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(path, []byte(jobs), 0o600))
	p := start(t, append([]string{
		"serve", "-c", path, "--endpoints", strings.Join(etcd.Endpoints(), ","), "--listen", "127.0.0.1:0", "--leader-ttl", "300s",
	}, args...)...)
	p.await("leading")
	return etcd, p
}

// requireResigned checks that the next leader need not wait for the TTL.
func requireResigned(t *testing.T, etcd *etcdtest.Cluster) {
	t.Helper()
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	_, err = leader.Current(t.Context(), etcd.Client(t), keys)
	require.ErrorIs(t, err, leader.ErrNoLeader)
}

const rarely = "jobs:\n  a:\n    schedule: '@yearly'\n    shell: 'true'\n"

// In `serve | tee log` Ctrl-C ends tee first. What serve says after that must not kill it.
func TestServeDrainsWithoutAReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	etcd, p := serving(t, "jobs:\n  busy:\n    schedule: '* * * * * *'\n    shell: |\n"+
		"      sh -c 'kill -PIPE $$'; echo $? > "+filepath.Join(dir, "status")+"\n"+
		"      sleep 2; echo drained > "+filepath.Join(dir, "done")+"\n")
	p.await("run started")
	require.NoError(t, p.pipe.Close())
	p.signal(syscall.SIGTERM)
	require.NoError(t, p.end())
	requireResigned(t, etcd)
	require.FileExists(t, filepath.Join(dir, "done"))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	require.NoError(t, err)
	require.Equal(t, "141\n", string(status), "to a command SIGPIPE does what it always does: `yes | head` has to end")
}

// A terminal that goes away sends SIGHUP more than once.
func TestServeDrainsOnHangup(t *testing.T) {
	t.Parallel()
	etcd, p := serving(t, "jobs:\n  busy:\n    schedule: '* * * * * *'\n    shell: sleep 1\n")
	p.await("run started")
	p.signal(syscall.SIGHUP)
	require.Contains(t, p.await("stopping: "), "hangup signal received; no new runs, running ones may finish; a second signal stops them")
	p.signal(syscall.SIGHUP)
	require.NoError(t, p.end())
	requireResigned(t, etcd)
}

// The second signal does not leave the commands to themselves: what they do would be done beside the next
// attempt elsewhere. They are stopped, and that is on record.
func TestServeStopsTheRunsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]syscall.Signal{"after SIGTERM": syscall.SIGTERM, "after SIGHUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd, p := serving(t, "jobs:\n  busy:\n    schedule: '* * * * * *'\n    shell: sleep 3600\n")
			p.await("run started")
			p.signal(first)
			p.await("draining: ")
			p.signal(syscall.SIGINT)
			p.await("run told to stop")
			p.await("canceled")
			require.NoError(t, p.end())
			requireResigned(t, etcd)
		})
	}
}

// Under nohup a SIGHUP is none of ours.
func TestServeUnderNohup(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nohup"); err != nil {
		t.Skip("there is no nohup")
	}
	etcd := etcdtest.Start(t)
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rarely), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("nohup", self, "serve", "-c", path, "--endpoints", etcd.Endpoints()[0], "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	log := bufio.NewScanner(stderr)
	until := func(text string) {
		for log.Scan() {
			if strings.Contains(log.Text(), text) {
				return
			}
		}
		require.Fail(t, "no "+text)
	}
	until("leading")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	until("stopping: terminated signal received")
	_, err = io.Copy(io.Discard, stderr)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
}

// A command that only reads dies quietly when nobody reads on.
func TestOthersDieOfABrokenPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	self, err := os.Executable()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd := exec.Command(self, "next", "@daily", "-n", "1000")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdout, cmd.Stderr = w, &stderr
	require.EqualError(t, cmd.Run(), "signal: broken pipe")
	require.Empty(t, stderr.String())
	require.NoError(t, w.Close())
}
