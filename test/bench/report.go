package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is all that was measured in one call.
type report struct {
	Machine machine  `json:"machine"`
	Flags   string   `json:"flags"`
	Seconds int      `json:"seconds"` // of each measurement
	Results []result `json:"results"`
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// text writes the table for people.
func (r *report) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nscenario\tcontestant\tdelivered\truns/s\tp50 ms\tp99 ms\tmax ms\tCPU ms/run\trevs/run\tbytes/run\theap B/job\tothers\t")
	last := ""
	for i := range r.Results {
		res := &r.Results[i]
		name := res.Scenario
		if name == last {
			name = ""
		}
		last = res.Scenario
		fmt.Fprintln(w, strings.Join(append([]string{name, res.Title}, res.cells()...), "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range r.Results {
		if line := r.Results[i].remark(); line != "" {
			fmt.Fprintln(out, line)
		}
	}
	if line := r.ofCeiling(); line != "" {
		fmt.Fprintln(out, line)
	}
	if n := r.disturbed(); n > 0 {
		fmt.Fprintf(out, "\nTHE MACHINE WAS BUSY with other things during %d of %d measurements: they are no figures to quote.\n", n, len(r.Results))
	}
	_, err := fmt.Fprintf(out, "\nEach measured for %d s. Load before %.2f, after %.2f; \"others\" are the cores that other processes used "+
		"meanwhile.\n", r.Seconds, r.Machine.LoadBefore, r.Machine.LoadAfter)
	return err
}

// quiet is how many cores others may use while something is measured.
const quiet = 0.25

// disturbed is how many measurements others have disturbed.
func (r *report) disturbed() (n int) {
	for i := range r.Results {
		if r.Results[i].OtherCores > quiet {
			n++
		}
	}
	return n
}

// manyJobs are enough for the heap a job to mean something.
const manyJobs = 1000

func (r *result) cells() []string {
	if r.Failed != "" {
		return []string{"failed", "", "", "", "", "", "", "", "", ""}
	}
	cells := []string{"", "", "", "", "", "", "", "", "", fmt.Sprintf("%.1f", r.OtherCores)}
	if r.Delay != nil {
		cells[0] = fmt.Sprintf("%.1f%%", 100*r.Delivered)
		for i, ms := range []float64{r.Delay.P50, r.Delay.P99, r.Delay.Max} {
			cells[2+i] = fmt.Sprintf("%.1f", ms)
		}
	}
	if r.Runs > 0 {
		cells[1] = fmt.Sprintf("%.0f", r.RunsPerSecond)
		cells[5] = fmt.Sprintf("%.3f", r.CPUPerRun)
		cells[6] = fmt.Sprintf("%.2f", r.RevisionsPerRun)
		cells[7] = fmt.Sprintf("%.0f", r.BytesPerRun)
	}
	if r.HeapPerJob != 0 && r.Jobs >= manyJobs {
		cells[8] = fmt.Sprintf("%.0f", r.HeapPerJob)
	}
	return cells
}

// remark is what does not fit the table.
func (r *result) remark() string {
	switch {
	case r.Failed != "":
		return fmt.Sprintf("%s, %s: %s", r.Scenario, r.Title, r.Failed)
	case r.Takeover != nil:
		return fmt.Sprintf("%s: the next leader was elected after %.0f ms, had loaded all jobs after %.0f ms, and its first run began after %.0f ms",
			r.Scenario, r.Takeover.Elected, r.Takeover.Loaded, r.Takeover.FirstRun)
	case strings.HasPrefix(r.Scenario, "idle-"):
		return fmt.Sprintf("%s: %d revisions in %.0f s, %.1f%% of a core", r.Scenario, r.Revisions, r.Seconds, 100*r.Cores)
	case r.NotRun > 0:
		return fmt.Sprintf("%s: %d records of runs that were skipped or missed were written beside %d runs", r.Scenario, r.NotRun, r.Runs)
	case r.Definition > 0 && r.Jobs >= manyJobs*100:
		return fmt.Sprintf("%s: of the heap a job, %d bytes are its definition", r.Scenario, r.Definition)
	}
	return ""
}

// ofCeiling compares the fastest with what etcd could.
func (r *report) ofCeiling() string {
	var best, limit float64
	for i := range r.Results {
		switch res := &r.Results[i]; res.Contestant {
		case ceiling:
			limit = res.RunsPerSecond
		case ours:
			best = max(best, res.RunsPerSecond)
		}
	}
	if best == 0 || limit == 0 {
		return ""
	}
	return fmt.Sprintf("etcdcron at its fastest, %.0f runs a second, is at %.0f%% of etcd's ceiling", best, 100*best/limit)
}

// bursts are the results of bursts of each contestant, by the number of jobs.
func (r *report) bursts() map[string][]result {
	found := make(map[string][]result)
	for i := range r.Results {
		if res := &r.Results[i]; res.Delay != nil && strings.HasPrefix(res.Scenario, "burst-") {
			found[res.Contestant] = append(found[res.Contestant], *res)
		}
	}
	for _, results := range found {
		slices.SortFunc(results, func(a, b result) int { return a.Jobs - b.Jobs })
	}
	return found
}
