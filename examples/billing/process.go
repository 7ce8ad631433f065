package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one instance as a process of its own.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string // file
	killed bool
	exited chan struct{}
	err    error // after exited
}

// startProcess starts this very program as an instance.
func startProcess(name, dir string, environment []string, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()                                                                       // the process has its own
	p.cmd = exec.Command(program, append([]string{"instance", "--name", name}, args...)...) //nolint:noctx // it is ended by signals
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: it gets no signal that is meant for the demo, and when the demo's shell ends before the
	// demo, the kernel does not wake up (SIGCONT) what is frozen.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process as a power cut would: at once, and with no say in it.
func (p *process) kill() error {
	p.killed = true
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop ends the process as a deployment does, and expects it to end well.
func (p *process) stop(limit time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return p.err
	case <-time.After(limit):
		return fmt.Errorf("it has not ended %s after SIGTERM", limit)
	}
}

// lastWords are the last lines of its log.
func (p *process) lastWords() string {
	const enough = 4 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-enough):]))
}
