package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"
)

// machine is what everything was measured on.
type machine struct {
	Date       string  `json:"date"`
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	Memory     string  `json:"memory"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	Etcd       string  `json:"etcd"`
	FsyncP50   float64 `json:"fsync_p50_ms"` // of an append of 4 KiB
	FsyncP99   float64 `json:"fsync_p99_ms"`
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, Linux %s, %s, etcd %s in the process of each contestant,\n"+
		"with fsync (4 KiB: p50 %.2f ms, p99 %.2f ms). %s, load before that %.2f",
		m.CPU, m.Cores, m.Memory, m.Kernel, m.Go, m.Etcd, m.FsyncP50, m.FsyncP99, m.Date, m.LoadBefore)
}

func describeMachine(temp string) (machine, error) {
	m := machine{
		Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		CPU:  valueOf("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: valueOf("/proc/meminfo", "MemTotal"),
		Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease")), Go: runtime.Version(), Etcd: version.Version,
		LoadBefore: load(),
	}
	if kib, err := strconv.Atoi(strings.TrimSuffix(m.Memory, " kB")); err == nil {
		m.Memory = fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
	}
	delays, err := fsyncs(filepath.Join(temp, "fsync"))
	m.FsyncP50, m.FsyncP99 = milliseconds(percentile(delays, 0.5)), milliseconds(percentile(delays, 0.99))
	return m, err
}

// fsyncs is how long the disk takes to write a little through, sorted.
func fsyncs(name string) ([]time.Duration, error) {
	const times, size = 300, 4 << 10
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer os.Remove(name)
	defer f.Close()
	block := make([]byte, size)
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took, nil
}

func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

// valueOf is the value of the first line of a file that begins with the key.
func valueOf(name, key string) string {
	for line := range strings.Lines(read(name)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

// load is the load of the last minute.
func load() float64 {
	first, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// ownCPU is the CPU time of this process, user and system.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// machineCPU is the CPU time of all processes, with what a hypervisor gave to somebody else.
func machineCPU() time.Duration {
	const tick = 10 * time.Millisecond // see proc_stat(5)
	first, _, _ := strings.Cut(read("/proc/stat"), "\n")
	var busy time.Duration
	for i, field := range strings.Fields(first) {
		n, err := strconv.ParseInt(field, 10, 64)
		switch i { // cpu user nice system idle iowait irq softirq steal guest guest_nice
		case 1, 2, 3, 6, 7, 8:
			if err == nil {
				busy += time.Duration(n) * tick
			}
		}
	}
	return busy
}
