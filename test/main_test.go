package test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/test/command"
)

// scratch is a folder for what all tests of the package share.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "etcdcron-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	return m.Run()
}

// build builds the command once, when a test first needs it.
var build = sync.OnceValues(func() (string, error) {
	return command.Build("..", filepath.Join(scratch, "bin"))
})

// binary is the path of the command, built from this tree.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	require.NoError(tb, err)
	return path
}
