package executor

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
)

const (
	lineBurst = 1000 // lines of a run that are logged as fast as they come
	lineRate  = 100  // a second, after the burst

	queueLines = 64 // that wait for the log
	queueWait  = 100 * time.Millisecond
)

// lineLog writes the lines of one command's output to the log, from a goroutine of its own, so that a
// log that stands still does not stop the command. Its methods are safe for concurrent use, but none
// may follow close.
type lineLog struct {
	queue chan queued
	done  chan struct{}
	quit  atomic.Bool // write nothing more

	mu      sync.Mutex
	bucket  bucket
	skipped int  // lines left out since the last one queued
	slow    bool // the log did not take the last line in time: do not wait for it again
}

type queued struct {
	stream, text string
	skipped      int // lines left out before this one
}

func newLineLog(log *zap.Logger) *lineLog {
	l := &lineLog{queue: make(chan queued, queueLines), done: make(chan struct{}), bucket: bucket{tokens: lineBurst}}
	go l.write(log)
	return l
}

func (l *lineLog) write(log *zap.Logger) {
	defer close(l.done)
	for q := range l.queue {
		if l.quit.Load() {
			return
		}
		if q.skipped > 0 {
			log.Warn("lines of output were not logged: too many, or the log too slow", zap.Int("lines", q.skipped))
		}
		if q.stream != "" {
			log.Info(q.text, zap.String("stream", q.stream))
		}
	}
}

// line logs a line, or reports false if it left it out because there are too many.
func (l *lineLog) line(stream string, line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bucket.take(time.Now()) {
		l.skipped++
		return false
	}
	q := queued{stream: stream, text: logText(line), skipped: l.skipped}
	if l.send(q) {
		l.skipped = 0
	} else {
		l.skipped++
	}
	return true
}

func (l *lineLog) send(q queued) bool {
	select {
	case l.queue <- q:
		l.slow = false
		return true
	default:
	}
	if l.slow {
		return false
	}
	select {
	case l.queue <- q:
		return true
	case <-time.After(queueWait):
		l.slow = true
		return false
	}
}

// skip counts lines that are left out.
func (l *lineLog) skip(lines int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped += lines
}

// close waits up to wait for the log to take what is queued, and gives up the rest. A log that never
// takes it keeps the goroutine.
func (l *lineLog) close(wait time.Duration) {
	defer l.quit.Store(true)
	end := time.After(wait)
	if l.skipped > 0 {
		select {
		case l.queue <- queued{skipped: l.skipped}:
		case <-end:
			close(l.queue)
			return
		}
	}
	close(l.queue)
	select {
	case <-l.done:
	case <-end:
	}
}

// logText is a line as it is logged: at most maxLine bytes of it, and clean.
func logText(line []byte) string {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) <= maxLine {
		return cleanLine(line)
	}
	n := maxLine
	for n > maxLine-utf8.UTFMax && !utf8.RuneStart(line[n]) {
		n--
	}
	return cleanLine(line[:n]) + " [cut]"
}

// bucket lets lineBurst lines through at once, and lineRate a second in the long run.
type bucket struct {
	tokens float64
	last   time.Time
}

func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.tokens = min(lineBurst, b.tokens+now.Sub(b.last).Seconds()*lineRate)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
