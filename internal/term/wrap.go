package term

import "strings"

// Wrap breaks text at blanks into lines of at most limit columns; a word that is longer has a line of its own. No
// limit, 0, is one line.
func Wrap(text string, limit int) []string {
	if limit <= 0 || Width(text) <= limit {
		return []string{text}
	}
	var lines []string
	line, n := "", 0
	for word := range strings.FieldsSeq(text) {
		w := Width(word)
		if n > 0 && n+1+w > limit {
			lines = append(lines, line)
			line, n = "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+w
	}
	return append(lines, line)
}
