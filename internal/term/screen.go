package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Screen is what a writer can show. The zero Screen is plain text of any width: a file or a pipe.
type Screen struct {
	Color  bool
	Width  int // columns; 0 is no limit
	Height int // lines; 0 is no limit
}

// ScreenOf looks at w: only a terminal has colours and a width. NO_COLOR (https://no-color.org) and
// TERM=dumb switch the colours off; getenv is os.Getenv outside of tests.
func ScreenOf(w io.Writer, getenv func(string) string) Screen {
	f, ok := w.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return Screen{}
	}
	s := Screen{Color: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
	if width, height, err := xterm.GetSize(int(f.Fd())); err == nil {
		s.Width, s.Height = width, height
	}
	return s
}

// Style is how a text is set off. The zero Style is plain.
type Style string

// The styles, by what they mean.
const (
	Good    Style = "\x1b[32m" // green
	Bad     Style = "\x1b[31m" // red
	Caution Style = "\x1b[33m" // yellow
	Faint   Style = "\x1b[2m"  // of less weight
	Heading Style = "\x1b[1m"  // bold
	reset         = "\x1b[0m"
)

// Paint sets text in style, if the screen has colours.
func (s Screen) Paint(style Style, text string) string {
	if !s.Color || style == "" || text == "" {
		return text
	}
	return string(style) + text + reset
}
