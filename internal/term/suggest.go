package term

import "iter"

// Closest is the candidate that word was most likely meant to be, or "" when none is near: at
// least one character may differ, and up to a third of them.
func Closest(word string, candidates iter.Seq[string]) string {
	best, nearest := "", max(1, len([]rune(word))/3)+1
	for c := range candidates {
		if d := distance([]rune(word), []rune(c), nearest); d < nearest {
			best, nearest = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that make a into b
// (Damerau's, restricted); a result of limit or more means only that it is not below.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
