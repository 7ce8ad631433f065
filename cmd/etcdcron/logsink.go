package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	sinkLines = 4096            // that wait to be written
	sinkFlush = 2 * time.Second // how long the end of the process waits for them
)

// logSink writes log lines from a goroutine of its own and loses lines when they cannot be written: a
// reader that stands still (a log shipper that hangs, a terminal that was stopped) must not stop the
// scheduler. It counts what it lost and says so when it can write again.
type logSink struct {
	lines chan []byte
	lost  atomic.Int64
	end   sync.Once
	done  chan struct{}
}

func newLogSink(w io.Writer) *logSink {
	s := &logSink{lines: make(chan []byte, sinkLines), done: make(chan struct{})}
	go s.write(w)
	return s
}

func (s *logSink) write(w io.Writer) {
	defer close(s.done)
	for line := range s.lines {
		if line == nil {
			return
		}
		if n := s.lost.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(w, "%d lines of the log were lost: nobody read them\n", n)
		}
		_, _ = w.Write(line) // there is nobody to tell
	}
}

// Write implements zapcore.WriteSyncer. It never blocks and never fails.
func (s *logSink) Write(line []byte) (int, error) {
	select {
	case s.lines <- append([]byte(nil), line...):
	default:
		s.lost.Add(1)
	}
	return len(line), nil
}

// Sync implements zapcore.WriteSyncer.
func (s *logSink) Sync() error { return nil }

// close writes what waits, for at most two seconds.
func (s *logSink) close() {
	s.end.Do(func() {
		limit := time.NewTimer(sinkFlush)
		defer limit.Stop()
		select {
		case s.lines <- nil:
		case <-limit.C:
			return
		}
		select {
		case <-s.done:
		case <-limit.C:
		}
	})
}
