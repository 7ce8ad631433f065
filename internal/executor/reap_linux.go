package executor

import (
	"context"
	"os"
	"os/signal"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapPause keeps looks at all processes apart. A zombie does no harm for that long.
const reapPause = time.Second

// Reap takes the exit statuses of orphans until ctx ends, if it is this process to which the kernel gives
// them: in a container it is process 1, and it is a child subreaper elsewhere (PR_SET_CHILD_SUBREAPER).
// Otherwise it returns at once. It leaves the commands of this package alone; a process that starts
// others by other means must not call it.
func Reap(ctx context.Context) {
	if os.Getpid() != 1 && !isSubreaper() {
		return
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		again := !reapOrphans()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reapPause):
		}
		if again {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-died:
		}
	}
}

func isSubreaper() bool {
	var yes int32
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&yes)), 0) //nolint:gosec // prctl writes there, and there is no wrapper for it
	return errno == 0 && yes != 0
}

// reapOrphans names each child that it reaps: a wait for any child would take the statuses of ours. It is
// false if it could not look.
func reapOrphans() bool {
	pids, err := allPids()
	if err != nil {
		return false
	}
	self := os.Getpid()
	var zombies []int
	for _, pid := range pids {
		if s, err := readStat(pid); err == nil && s.parent == self && s.dead() {
			zombies = append(zombies, pid)
		}
	}
	return children.exclude(func(ours func(int) bool) {
		for _, pid := range zombies {
			if !ours(pid) {
				unix.Wait4(pid, nil, unix.WNOHANG, nil) //nolint:errcheck // gone is as good as reaped
			}
		}
	})
}
