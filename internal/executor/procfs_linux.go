package executor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// stat is what we need of /proc/<pid>/stat; see proc_pid_stat(5).
type stat struct {
	state         byte
	parent, group int
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat begins after the last parenthesis: the name before it may itself hold anything.
func parseStat(b []byte) (stat, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 3 || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("not a process's stat: %.80q", b)
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	group, err2 := strconv.Atoi(string(f[2]))
	if err1 != nil || err2 != nil {
		return stat{}, fmt.Errorf("not a process's stat: %.80q", b)
	}
	return stat{state: f[0][0], parent: parent, group: group}, nil
}

// allPids are the ids of all processes that this one can see.
func allPids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
