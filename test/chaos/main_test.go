package chaos

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdcron/etcdcron/test/command"
)

var (
	soakTime = flag.Duration("chaos.duration", 0, "of a soak, how long the faults last; 0 for none")
	soakSeed = flag.Uint64("chaos.seed", 0, "of a soak; 0 draws one")
	soakFile = flag.String("chaos.report", "", "of a soak, a file for its report as JSON")
)

// programs is where the processes of the tests are.
var programs string

func binary() string { return filepath.Join(programs, "etcdcron") }
func worker() string { return filepath.Join(programs, "worker") }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "chaos-programs-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		for _, pkg := range []string{"./cmd/etcdcron", "./test/chaos/worker"} {
			if _, err := command.BuildPackage("../..", programs, pkg, "-tags", buildTags); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

const second = time.Second
