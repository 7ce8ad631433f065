package executor

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleanLine is a line as it may stand in a log: on one line, whatever was printed. Tabs become spaces,
// for console logs separate their columns with tabs.
func cleanLine(line []byte) string {
	return clean(line, func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		return text(r)
	})
}

// cleanText is text as it may stand in a record. A carriage return ends a line, as it does on screen
// for a progress bar.
func cleanText(p []byte) string {
	s := clean(p, func(r rune) rune {
		switch r {
		case '\t', '\n', '\r':
			return r
		}
		return text(r)
	})
	if !strings.ContainsRune(s, '\r') {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// text is r, or U+FFFD for what drives a terminal instead of being shown: control characters, line and
// paragraph separators, and the marks that turn the direction of the text around them
// (https://trojansource.codes).
func text(r rune) rune {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return utf8.RuneError
	default:
		return r
	}
}

// clean maps each character, and makes one U+FFFD of each row of what is no text.
func clean(p []byte, mapped func(rune) rune) string {
	var b strings.Builder
	b.Grow(len(p))
	var last rune
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		p = p[n:]
		if r = mapped(r); r != utf8.RuneError || last != utf8.RuneError {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}
