package term

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Clean makes text safe to show on one line: white space becomes a blank, and what does not print
// (escape sequences, characters that turn the reading direction) becomes U+FFFD.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Plain is a text without what Paint has added.
func Plain(text string) string { return escapes.ReplaceAllString(text, "") }

// Width is how many columns text takes: two for East Asian wide characters, none for combining marks.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 { // below the first combining mark nothing is wide
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default: // ambiguous ones too
		return 1
	}
}

// Cut shortens text to limit columns; what was cut ends in an ellipsis.
func Cut(text string, limit int) string {
	if Width(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > limit-1 {
			return text[:i] + "…"
		}
	}
	return text
}
