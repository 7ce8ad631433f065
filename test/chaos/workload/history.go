package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// Mono is the host's monotonic clock, in nanoseconds. All processes of the host share it.
func Mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // there is always one
	}
	return ts.Nano()
}

// History is a file of events. Safe for concurrent use, also by several processes.
type History struct{ file *os.File }

// suffix ends the names of the files.
const suffix = ".history"

// OpenHistory opens the file of that name in dir.
func OpenHistory(dir, name string) (*History, error) {
	file, err := os.OpenFile(filepath.Join(dir, name+suffix), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &History{file: file}, nil
}

// Add appends an event, with the time that it is. What cannot be written ends the process: an attempt that is not in
// the history must not go on.
func (h *History) Add(e checker.Event) {
	e.Mono, e.Wall = Mono(), time.Now().UTC()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the history cannot be written: %v", err))
	}
}

// Close closes the file.
func (h *History) Close() error { return h.file.Close() }

// ReadHistory reads all files in dir.
func ReadHistory(dir string) ([]checker.Event, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var events []checker.Event
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		for lines := json.NewDecoder(file); lines.More(); {
			var e checker.Event
			if err := lines.Decode(&e); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			events = append(events, e)
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return events, nil
}

const (
	pulse    = 50 * time.Millisecond
	minStall = 200 * time.Millisecond
)

// Watch writes down when the process gets no time from the machine, until ctx ends: what it does late then, it could
// not do sooner.
func (h *History) Watch(ctx context.Context, instance string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		Pulse(ctx, func(since int64) { h.Add(checker.Event{Kind: checker.Stall, Instance: instance, Called: since}) })
	})
	return func() { cancel(); done.Wait() }
}

// Pulse looks at the clock all the time until ctx ends, and tells of each time at which it could not, and since when.
func Pulse(ctx context.Context, stalled func(since int64)) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for last := Mono(); ; last = Mono() {
		select {
		case <-tick.C:
			if Mono()-last > int64(minStall) {
				stalled(last)
			}
		case <-ctx.Done():
			return
		}
	}
}
