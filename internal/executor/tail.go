package executor

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// tail keeps the last bytes of what is written to it. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	limit int
	ring  []byte // grows to limit, then wraps at next
	next  int
	total int64
}

func newTail(limit int) *tail { return &tail{limit: limit} }

// write appends the parts, nothing in between.
func (t *tail) write(parts ...[]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range parts {
		t.total += int64(len(p))
		if over := len(p) - t.limit; over > 0 {
			p = p[over:]
		}
		n := min(len(p), t.limit-len(t.ring))
		t.ring = append(t.ring, p[:n]...)
		for p = p[n:]; len(p) > 0; p = p[n:] {
			n = copy(t.ring[t.next:], p)
			t.next = (t.next + n) % t.limit
		}
	}
}

// text is the end of what was written, as clean text of at most limit bytes; if anything is missing it
// begins with a mark that tells how much there was.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	raw := append(append(make([]byte, 0, len(t.ring)), t.ring[t.next:]...), t.ring[:t.next]...)
	truncated := t.total > int64(len(raw))
	text := cleanText(raw)
	if !truncated && len(text) <= t.limit {
		return text
	}
	mark := fmt.Sprintf("[cut: the end of %d bytes]\n", t.total)
	return mark + lastBytes(text, t.limit-len(mark))
}

// mark appends a mark to text, within the limit.
func (t *tail) mark(text, mark string) string {
	return lastBytes(text, t.limit-len(mark)) + mark
}

// lastBytes is the end of s, at most limit bytes, beginning with a whole character.
func lastBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	i := len(s) - limit
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}
