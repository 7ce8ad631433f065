package executor

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(64, 200).Draw(t, "limit")
		kept := newTail(limit)
		var all string
		for _, p := range rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z\n]{0,300}`))).Draw(t, "parts") {
			all += p
			kept.write([]byte(p))
		}
		got := kept.text()
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), limit)
		require.LessOrEqual(t, cap(kept.ring), 2*limit, "memory does not grow with what is written")
		if clean := cleanText([]byte(all)); len(all) <= limit && len(clean) <= limit {
			require.Equal(t, clean, got)
			return
		}
		end, ok := strings.CutPrefix(got, fmt.Sprintf("[cut: the end of %d bytes]\n", len(all)))
		require.True(t, ok, "%q", got)
		require.True(t, strings.HasSuffix(cleanText([]byte(all)), strings.TrimLeft(end, "\ufffd\n")), "%q", end)
	})
}

func TestTailCutsNoCharacter(t *testing.T) {
	t.Parallel()
	for limit := 64; limit < 70; limit++ {
		kept := newTail(limit)
		kept.write([]byte(strings.Repeat("世", 100)))
		require.NotContains(t, kept.text(), "\ufffd")
		require.Contains(t, kept.text(), "世")
	}
}

func TestTailThatGrowsWhenCleaned(t *testing.T) {
	t.Parallel()
	kept := newTail(100)
	kept.write([]byte(strings.Repeat("a\xff", 50)))
	require.LessOrEqual(t, len(kept.text()), 100)
	require.Contains(t, kept.text(), "[cut: the end of 100 bytes]\n")
}

func TestCleanLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":           "plain",
		"tab\there":       "tab here",
		"new\nline":       "new\ufffdline",
		"\r\x1b[2K\x07":   "\ufffd[2K\ufffd",
		"\u009b31m":       "\ufffd31m",
		"a\u2028b\u2029c": "a\ufffdb\ufffdc",
		"a\u202eb\u2066c": "a\ufffdb\ufffdc",
		"\xed\xa0\x80":    "\ufffd", // a lone surrogate
		"\xff\xfe\x00":    "\ufffd",
		"\ufffd":          "\ufffd",
		"été 世界 \U0001f469\u200d\U0001f680": "été 世界 \U0001f469\u200d\U0001f680",
	} {
		require.Equal(t, want, cleanLine([]byte(in)), "%q", in)
	}
}
