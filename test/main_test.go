package test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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
	if err := lookAtSources(); err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "bin", "etcdcron")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/etcdcron").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// lookAtSources makes the tests' result depend on what the command is built of. go test keeps a result
// until a file that the test itself has looked at changes; it knows nothing of what go build reads.
func lookAtSources() error {
	return filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	})
}

// binary is the path of the command, built from this tree.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	require.NoError(tb, err)
	return path
}
