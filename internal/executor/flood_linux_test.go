package executor

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// floodVar has TestFloodTakesLittleMemory print that many bytes: 5368709120 takes ten seconds and more.
const floodVar = "EXECUTOR_TEST_FLOOD"

const (
	defaultFlood = 200 << 20
	// maxFloodMemory is what the issue allows above the baseline; it is a few MiB, most of them Go's garbage.
	maxFloodMemory = 100 << 20
)

func init() {
	helpers["flood"] = func() {
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zap.InfoLevel))
		Command{Shell: "echo once"}.do(context.Background(), &fakeRun{}, log, nil) //nolint:errcheck // what the first run needs for good
		debug.FreeOSMemory()
		baseline := memory("VmRSS")
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) //nolint:errcheck // the peak is at least the baseline then
		run := &fakeRun{}
		err := Command{Shell: os.Args[1]}.do(context.Background(), run, log, nil)
		fmt.Printf("%v\n%d\n%d\n%s", err, baseline, memory("VmHWM"), run.output)
	}
}

// memory is a line of /proc/self/status, in bytes.
func memory(name string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		panic(err)
	}
	return kib << 10
}

func TestFloodTakesLittleMemory(t *testing.T) {
	size := defaultFlood
	if text := os.Getenv(floodVar); text != "" {
		var err error
		size, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for name, shell := range map[string]string{
		"short lines":      "yes | head -c %d; echo the end",
		"one endless line": "head -c %d /dev/zero | tr '\\0' x; echo; echo the end",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := helper(t, "flood", fmt.Sprintf(shell, size)).Output()
			require.NoError(t, err)
			parts := strings.SplitN(string(out), "\n", 4)
			require.Len(t, parts, 4)
			require.Equal(t, "<nil>", parts[0])
			baseline, err := strconv.Atoi(parts[1])
			require.NoError(t, err)
			peak, err := strconv.Atoi(parts[2])
			require.NoError(t, err)
			t.Logf("%d MiB printed: %.1f MiB above a baseline of %.1f MiB", size>>20, float64(peak-baseline)/(1<<20), float64(baseline)/(1<<20))
			require.Less(t, peak-baseline, maxFloodMemory)
			printed := size + len("the end\n")
			if name == "one endless line" {
				printed++
			}
			require.True(t, strings.HasPrefix(parts[3], fmt.Sprintf("[cut: the end of %d bytes]\n", printed)), "%.60q", parts[3])
			require.True(t, strings.HasSuffix(parts[3], "\nthe end\n"))
		})
	}
}
