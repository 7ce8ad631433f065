// Package command builds the etcdcron command for tests that run it as a process.
package command

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the command of the tree at root, into dir, and returns its path.
//
// It makes the test's result depend on what the command is built of: go test keeps a result until a file
// that the test itself has looked at changes, and knows nothing of what go build reads.
func Build(root, dir string) (string, error) { return BuildPackage(root, dir, "./cmd/etcdcron") }

// BuildPackage is Build of another command of the tree, with further flags for go build. The program has the name of
// its folder.
func BuildPackage(root, dir, pkg string, flags ...string) (string, error) {
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look at the sources: %w", err)
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
