package term_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/term"
)

func TestRelative(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	require.Empty(t, term.Relative(time.Time{}, now))
	for d, want := range map[time.Duration]string{
		0:                                "now",
		400 * time.Millisecond:           "now",
		-400 * time.Millisecond:          "now",
		600 * time.Millisecond:           "in 1s",
		59 * time.Second:                 "in 59s",
		3 * time.Minute:                  "in 3m",
		200 * time.Second:                "in 3m20s",
		-59*time.Minute - 59*time.Second: "59m ago",
		time.Hour + 5*time.Minute:        "in 1h5m",
		-47 * time.Hour:                  "47h ago",
		-49 * time.Hour:                  "2d1h ago",
		12 * 24 * time.Hour:              "in 12d",
		800 * 24 * time.Hour:             "in 2y",
	} {
		require.Equal(t, want, term.Relative(now.Add(d), now))
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "<1ms", 999 * time.Microsecond: "<1ms", 7 * time.Millisecond: "7ms", 350 * time.Millisecond: "350ms", 1240 * time.Millisecond: "1.2s", 9999 * time.Millisecond: "10s",
		42 * time.Second: "42s", 200 * time.Second: "3m20s", 3 * time.Hour: "3h",
	} {
		require.Equal(t, want, term.Elapsed(d))
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a '' 'it'\''s' '$x' --n=1,2 'two words'`, term.CommandLine("a", "", "it's", "$x", "--n=1,2", "two words"))
}

func TestClean(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b c", term.Clean("a\nb\tc"))
	require.Equal(t, "\uFFFD[2J\uFFFDx", term.Clean("\x1b[2J\u202ex"))
	require.Equal(t, "日本 é ü", term.Clean("日本 é ü"))
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "u\u0308": 1, "日本": 4, "ｆｕ": 4, "…": 1, "🎉": 2} {
		require.Equal(t, want, term.Width(text), text)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	require.Equal(t, "abc", term.Cut("abc", 3))
	require.Equal(t, "ab…", term.Cut("abcd", 3))
	require.Equal(t, "日…", term.Cut("日本語", 4))
	require.Equal(t, 1, term.Width(term.Cut("abcd", 1)))
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := term.NewTable("A", "BB", "C")
	table.Row("日本", "", "a long text at the end")
	table.Row("x", term.Styled(term.Good, "ok\x1b"), 7)
	for _, tc := range []struct {
		screen term.Screen
		want   string
	}{
		{term.Screen{}, "A     BB   C\n日本  -    a long text at the end\nx     ok\uFFFD  7\n"},
		{term.Screen{Width: 30}, "A     BB   C\n日本  -    a long text at the…\nx     ok\uFFFD  7\n"},
		{term.Screen{Width: 5}, "A     BB   C\n日本  -    a long …\nx     ok\uFFFD  7\n"},
		{term.Screen{Color: true}, "\x1b[1mA\x1b[0m     \x1b[1mBB\x1b[0m   \x1b[1mC\x1b[0m\n" +
			"日本  \x1b[2m-\x1b[0m    a long text at the end\nx     \x1b[32mok\uFFFD\x1b[0m  7\n"},
	} {
		var b bytes.Buffer
		require.NoError(t, table.Write(&b, tc.screen))
		require.Equal(t, tc.want, b.String())
	}
}

func TestScreenOf(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	require.Equal(t, term.Screen{}, term.ScreenOf(&bytes.Buffer{}, none))
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, term.Screen{}, term.ScreenOf(f, none))
}

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"jobs", "leader", "validate"}
	for word, want := range map[string]string{
		"jbos": "jobs", "job": "jobs", "laeder": "leader", "valdiate": "validate", "x": "", "something": "", "": "",
	} {
		require.Equal(t, want, term.Closest(word, slices.Values(known)), word)
	}
}

// On a narrow screen the columns that give way are cut, and the blanks between columns; the last is cut last.
func TestTable_GiveWay(t *testing.T) {
	t.Parallel()
	table := term.NewTable("NAME", "SCHEDULE", "ZONE", "LAST").GiveWay("ZONE", "SCHEDULE")
	table.Row("billing", "*/20 * * * * *", "Asia/Shanghai", "10s ago")
	for width, want := range map[int]string{
		0:  "NAME     SCHEDULE        ZONE           LAST\nbilling  */20 * * * * *  Asia/Shanghai  10s ago\n",
		48: "NAME     SCHEDULE        ZONE           LAST\nbilling  */20 * * * * *  Asia/Shanghai  10s ago\n",
		46: "NAME     SCHEDULE        ZONE          LAST\nbilling  */20 * * * * *  Asia/Shangh…  10s ago\n",
		38: "NAME    SCHEDULE       ZONE   LAST\nbilling */20 * * * * * Asia/… 10s ago\n",
		34: "NAME    SCHEDULE    ZONE   LAST\nbilling */20 * * *… Asia/… 10s ago\n",
	} {
		var b bytes.Buffer
		require.NoError(t, table.Write(&b, term.Screen{Width: width}))
		require.Equal(t, want, b.String(), width)
	}
	require.True(t, term.NewTable("A").Empty())
	require.False(t, table.Empty())
}

func TestBar(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		done, total int64
		width       int
		want        string
	}{
		{0, 10, 12, "[>         ]"},
		{4, 10, 12, "[====>     ]"},
		{10, 10, 12, "[==========]"},
		{99, 10, 12, "[==========]"},
		{-1, 10, 12, "[>         ]"},
		{1, 0, 12, ""},
		{1, 2, 2, ""},
		{1 << 62, 1 << 62, 4, "[==]"},
	} {
		require.Equal(t, tc.want, term.Bar(tc.done, tc.total, tc.width))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a bb ccc"}, term.Wrap("a bb ccc", 0))
	require.Equal(t, []string{"a bb", "ccc"}, term.Wrap("a bb ccc", 5))
	require.Equal(t, []string{"a", "longword", "b"}, term.Wrap("a longword b", 3))
	require.Equal(t, []string{"日本", "日本"}, term.Wrap("日本 日本", 6))
}

func TestPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b", term.Plain("\x1b[31ma\x1b[0m b"))
}
