package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
)

// lineEvery is how often a line that changes is written where it cannot be written over.
const lineEvery = 5 * time.Second

// changingLine tells how far something is: on a terminal as one line that changes, elsewhere as a line for a
// change, at most one every five seconds.
type changingLine struct {
	w        io.Writer
	terminal bool
	width    int // of the terminal

	mu      sync.Mutex
	text    string      // what is to be shown
	shown   string      // what is
	written time.Time   // when that was
	late    *time.Timer // shows what came too soon; nil when nothing did
}

// newChangingLine is a line on stderr, if people read it.
func (o *options) newChangingLine() *changingLine {
	if !o.forPeople() {
		return &changingLine{w: io.Discard}
	}
	width := o.screen(o.stderr).Width
	return &changingLine{w: o.stderr, terminal: width > 0, width: width}
}

func (l *changingLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = term.Clean(text)
	wait := lineEvery - time.Since(l.written)
	switch {
	case l.terminal || wait <= 0:
		l.write()
	case l.late == nil:
		l.late = time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.late != nil { // it has not ended
				l.late = nil
				l.write()
			}
		})
	}
}

// aside has say write lines above it.
func (l *changingLine) aside(say func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.terminal || l.shown == "" {
		say()
		return
	}
	fmt.Fprint(l.w, term.LineStart)
	say()
	l.shown = ""
	l.write()
}

// remove takes the line away, where that can be done.
func (l *changingLine) remove() {
	l.mu.Lock()
	if l.terminal && l.shown != "" {
		fmt.Fprint(l.w, term.LineStart)
		l.shown = ""
	}
	l.mu.Unlock()
	l.end()
}

func (l *changingLine) write() {
	switch {
	case l.text == l.shown:
		return
	case l.terminal:
		fmt.Fprint(l.w, term.LineStart, term.Cut(l.text, max(l.width-1, 1))) // in the last column some begin a new line
	default:
		fmt.Fprintln(l.w, l.text)
	}
	l.shown, l.written = l.text, time.Now()
}

// end leaves the line as it is.
func (l *changingLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late != nil {
		l.late.Stop()
		l.late = nil
	}
	if l.terminal && l.shown != "" {
		fmt.Fprintln(l.w)
	}
}
