package executor

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

const readSize = 32 << 10

// output is what a command prints: two pipes that are read until they end or are cut, whose end is kept
// and whose lines are logged.
type output struct {
	stdout, stderr pipe
	tail           *tail
	log            *lineLog
	ended          chan struct{} // closes when both pipes are at their end, or were cut
	cut            atomic.Bool
}

type pipe struct{ r, w *os.File }

func openOutput(log *zap.Logger) (*output, error) {
	o := &output{tail: newTail(state.MaxOutput), ended: make(chan struct{})}
	var err1, err2 error
	o.stdout.r, o.stdout.w, err1 = os.Pipe()
	o.stderr.r, o.stderr.w, err2 = os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		o.closeFiles()
		return nil, err
	}
	o.log = newLineLog(log)
	return o, nil
}

// read begins to read, once the command has its ends of the pipes.
func (o *output) read() {
	o.stdout.w.Close()
	o.stderr.w.Close()
	var readers sync.WaitGroup
	readers.Go(func() { o.readPipe(o.stdout.r, "stdout") })
	readers.Go(func() { o.readPipe(o.stderr.r, "stderr") })
	go func() {
		readers.Wait()
		close(o.ended)
	}()
}

func (o *output) readPipe(r *os.File, name string) {
	s := &stream{name: name, tail: o.tail, log: o.log}
	defer s.end()
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				o.cut.Store(true)
			}
			return
		}
	}
}

// close waits up to wait for the end of the pipes and then cuts them, then up to logWait for the log,
// and returns what goes into the record. Whoever still writes into a pipe that was cut gets SIGPIPE.
func (o *output) close(wait, logWait time.Duration) string {
	end := time.Now().Add(wait)
	o.stdout.r.SetReadDeadline(end) //nolint:errcheck // pipes have deadlines
	o.stderr.r.SetReadDeadline(end) //nolint:errcheck // pipes have deadlines
	<-o.ended
	o.closeFiles()
	o.log.close(logWait)
	text := o.tail.text()
	if o.cut.Load() {
		text = o.tail.mark(text, "\n[cut: a process outside the command's group held its output open]")
	}
	return text
}

func (o *output) closeFiles() {
	for _, f := range []*os.File{o.stdout.r, o.stdout.w, o.stderr.r, o.stderr.w} {
		f.Close()
	}
}
