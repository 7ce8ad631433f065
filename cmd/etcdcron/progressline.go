package main

import (
	"fmt"
	"sync"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// progressLine is the last line of a terminal, which shows how far a run is and is drawn anew in its place. Elsewhere
// nothing is shown. Safe for concurrent use.
type progressLine struct {
	o      *options
	screen term.Screen

	mu   sync.Mutex
	text string // what stands there; "" for nothing
}

func (o *options) newProgressLine() *progressLine {
	return &progressLine{o: o, screen: o.screen(o.stderr)}
}

// shown reports whether there is a terminal to show it on, and somebody who reads it.
func (l *progressLine) shown() bool { return l.screen.Width > 0 && l.o.forPeople() }

// show draws how far a run is.
func (l *progressLine) show(p *state.Progress) {
	text := progressText(p)
	if bar := term.Bar(p.Done, p.Total, barWidth); bar != "" {
		text = bar + " " + text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = term.Cut(term.Clean(text), l.screen.Width-1) // in the last column the terminal may begin a new line
	l.draw()
}

// aside has say write lines above.
func (l *progressLine) aside(say func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	say()
	l.draw()
}

// end takes the line away.
func (l *progressLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.text = ""
}

func (l *progressLine) draw() {
	if l.text != "" {
		fmt.Fprint(l.o.stderr, term.LineStart, l.text)
	}
}

func (l *progressLine) erase() {
	if l.text != "" {
		fmt.Fprint(l.o.stderr, term.LineStart)
	}
}
