package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/chaos/checker"
)

// Report is what a run of the tests has come to.
type Report struct {
	Seed            uint64                  `json:"seed"`
	Seconds         float64                 `json:"seconds"` // of faults
	Faults          map[string]int          `json:"faults"`
	Jobs            int                     `json:"jobs"`
	ScheduledTimes  int64                   `json:"scheduled_times"`
	Records         map[state.RunStatus]int `json:"records"`
	Requests        int                     `json:"requests"` // triggers and retries that were acknowledged
	Attempts        int                     `json:"attempts"` // that began
	Retries         int                     `json:"retries"`
	Recoveries      int                     `json:"recoveries"`
	Checkpoints     int                     `json:"checkpoints"` // that were acknowledged
	Refused         int                     `json:"refused"`     // writes with an old token
	Terms           int                     `json:"terms"`       // in which something was written
	LongestGap      float64                 `json:"longest_gap_seconds"`
	FirstAfter      float64                 `json:"first_start_after_last_fault_seconds"`
	SettledAfter    float64                 `json:"settled_after_last_fault_seconds"`
	LongestStall    float64                 `json:"longest_stall_seconds"` // in which the machine gave an instance no time
	Violations      []checker.Violation     `json:"violations"`
	lastFault, calm int64
}

// sum makes the report of what the checker was given.
func sum(r Report, in *checker.Input) Report {
	r.Faults, r.Records = make(map[string]int), make(map[state.RunStatus]int)
	terms := make(map[string]bool)
	for _, f := range in.Faults {
		if f.Kind != string(checker.Stall) {
			r.Faults[f.Kind]++
		}
	}
	r.Jobs, r.Requests = len(in.Jobs), len(in.Asked)
	for i := range in.Jobs {
		j := &in.Jobs[i]
		r.ScheduledTimes += max(int64(j.To.Sub(j.From.Truncate(j.Every))/j.Every), 0)
		for k := range in.Records[j.Name] {
			record := &in.Records[j.Name][k]
			r.Records[record.Status]++
			r.Retries += record.Retries
			r.Recoveries += record.Recoveries
			terms[fmt.Sprint(record.Term)] = true
		}
	}
	r.Terms = len(terms)
	var starts []int64
	for _, e := range in.Events {
		switch {
		case e.Kind == checker.Start:
			starts = append(starts, e.Mono)
		case e.Kind == checker.Saved:
			r.Checkpoints++
		case e.Kind == checker.Write && !e.Accepted:
			r.Refused++
		case e.Kind == checker.Stall:
			r.LongestStall = max(r.LongestStall, inSeconds(e.Mono-e.Called))
		}
	}
	r.Attempts = len(starts)
	slices.Sort(starts)
	for i := 1; i < len(starts); i++ {
		r.LongestGap = max(r.LongestGap, inSeconds(starts[i]-starts[i-1]))
	}
	if i, _ := slices.BinarySearch(starts, r.lastFault); i < len(starts) {
		r.FirstAfter = inSeconds(starts[i] - r.lastFault)
	}
	r.SettledAfter = inSeconds(r.calm - r.lastFault)
	return r
}

func inSeconds(ns int64) float64 { return time.Duration(ns).Round(time.Millisecond).Seconds() }

func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("seed %d, %.0f s of faults", r.Seed, r.Seconds)
	total := 0
	for _, kind := range slices.SortedFunc(maps.Keys(r.Faults), func(a, b string) int { return cmp.Or(cmp.Compare(r.Faults[b], r.Faults[a]), cmp.Compare(a, b)) }) {
		total += r.Faults[kind]
		line("  %-14s %6d", kind, r.Faults[kind])
	}
	line("  %-14s %6d", "faults", total)
	line("%d jobs, %d scheduled times, %d requests, %d terms", r.Jobs, r.ScheduledTimes, r.Requests, r.Terms)
	for _, status := range slices.Sorted(maps.Keys(r.Records)) {
		line("  %-14s %6d records", status, r.Records[status])
	}
	line("%d attempts, %d retries, %d recoveries, %d checkpoints, %d writes refused", r.Attempts, r.Retries, r.Recoveries, r.Checkpoints, r.Refused)
	line("longest time in which nothing began: %.3f s", r.LongestGap)
	line("after the last fault: the first run began after %.3f s, all was settled after %.3f s", r.FirstAfter, r.SettledAfter)
	line("longest time in which an instance got no time from the machine, frozen ones included: %.3f s", r.LongestStall)
	line("%d violations", len(r.Violations))
	return b.String()
}
