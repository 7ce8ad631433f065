package executor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"
)

// feed sends chunks through a stream and returns what was logged and what is kept.
func feed(chunks ...string) (lines []string, kept string) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := newLineLog(zap.New(core))
	s := &stream{name: "stdout", tail: newTail(1 << 20), log: l}
	for _, c := range chunks {
		s.write([]byte(c))
	}
	s.end()
	l.close(patience)
	for _, e := range logs.All() {
		lines = append(lines, e.Message)
	}
	return lines, s.tail.text()
}

func TestStreamLines(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", maxLine)
	for name, tc := range map[string]struct {
		chunks []string
		lines  []string
	}{
		"nothing":          {nil, nil},
		"no newline":       {[]string{"a"}, []string{"a"}},
		"across chunks":    {[]string{"a", "b\nc", "\n"}, []string{"ab", "c"}},
		"empty lines":      {[]string{"\n\n", "\n"}, []string{"", "", ""}},
		"CRLF":             {[]string{"a\r", "\nb"}, []string{"a", "b"}},
		"just fits":        {[]string{full, "\nb"}, []string{full, "b"}},
		"too long":         {[]string{full, "y\nb"}, []string{full + " [cut]", "b"}},
		"too long, pieces": {[]string{full, "y", full, "y\nb", "c\n"}, []string{full + " [cut]", "bc"}},
		"cut in character": {[]string{full[2:], "世\n"}, []string{full[2:] + " [cut]"}},
		"character across": {[]string{"\xe4\xb8", "\x96\n"}, []string{"世"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, kept := feed(tc.chunks...)
			require.Equal(t, tc.lines, lines)
			require.Equal(t, cleanText([]byte(strings.Join(tc.chunks, ""))), kept)
		})
	}
}

func TestStreamDoesNotDependOnChunks(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"\n", "\n\n", "世", "\xff", "\x00", strings.Repeat("x", maxLine-1), strings.Repeat("y", 3*maxLine)}),
		rapid.StringMatching(`[a-z ]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(piece, 0, 12).Draw(t, "chunks")
		lines, kept := feed(chunks...)
		wantLines, wantKept := feed(strings.Join(chunks, ""))
		require.Equal(t, wantLines, lines)
		require.Equal(t, wantKept, kept)
	})
}

func TestStreamsDoNotMixWithinALine(t *testing.T) {
	t.Parallel()
	l := newLineLog(zap.NewNop())
	defer l.close(patience)
	kept := newTail(100)
	out, err := &stream{tail: kept, log: l}, &stream{tail: kept, log: l}
	out.write([]byte("one "))
	err.write([]byte("two "))
	out.write([]byte("out\n"))
	err.write([]byte("err\n"))
	require.Equal(t, "one out\ntwo err\n", kept.text())
}
