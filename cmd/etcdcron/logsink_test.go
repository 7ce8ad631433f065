package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogSinkNeverBlocks(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe() // whose reader stands still
	s := newLogSink(w)
	for i := range 2 * sinkLines {
		n, err := fmt.Fprintln(s, "line", i)
		require.NoError(t, err)
		require.Positive(t, n)
	}
	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		read <- string(all)
	}()
	_, _ = fmt.Fprintln(s, "last")
	s.close()
	require.NoError(t, w.Close())
	text := <-read
	require.Contains(t, text, "line 0\n")
	require.Contains(t, text, "lines of the log were lost")
	require.Less(t, strings.Count(text, "\n"), 2*sinkLines)
}

func TestLogSinkWritesWhatWaits(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	s := newLogSink(&text)
	for i := range 100 {
		_, _ = fmt.Fprintln(s, "line", i)
	}
	s.close()
	s.close()
	require.Equal(t, 100, strings.Count(text.String(), "\n"))
	require.True(t, strings.HasSuffix(text.String(), "line 99\n"))
}
