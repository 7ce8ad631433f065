package executor

import (
	"os/exec"
	"sync"
)

// children are the processes whose status somebody here waits for, so that Reap leaves them alone. It is
// the one global of this package because wait(2) is global to the process.
var children childSet

type childSet struct {
	mu   sync.RWMutex // held for reading from fork to entry, for writing while reaping
	sub  sync.Mutex
	pids map[int]struct{}
}

// start starts cmd and enters it, before any reaping can see it.
func (s *childSet) start(cmd *exec.Cmd) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.sub.Lock()
	defer s.sub.Unlock()
	if s.pids == nil {
		s.pids = make(map[int]struct{})
	}
	s.pids[cmd.Process.Pid] = struct{}{}
	return nil
}

// forget removes a child that was reaped.
func (s *childSet) forget(pid int) {
	s.sub.Lock()
	defer s.sub.Unlock()
	delete(s.pids, pid)
}

// exclude calls f with a test for ours, unless a child is being started at this moment. It does not wait
// for that: a start can hang (in a network file system), and those after it would hang with it. It is
// false if f was not called.
func (s *childSet) exclude(f func(ours func(pid int) bool)) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	f(func(pid int) bool {
		s.sub.Lock()
		defer s.sub.Unlock()
		_, ok := s.pids[pid]
		return ok
	})
	return true
}
