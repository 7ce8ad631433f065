package main

import "time"

// result is a measurement. What does not apply is left out.
type result struct {
	Scenario   string `json:"scenario"`
	Contestant string `json:"contestant"`
	Title      string `json:"title"`
	Jobs       int    `json:"jobs"`
	Failed     string `json:"failed,omitempty"`

	Expected  int     `json:"expected,omitempty"` // runs that were due
	Started   int     `json:"started,omitempty"`  // runs whose handler was called meanwhile
	Delivered float64 `json:"delivered,omitempty"`
	Delay     *delay  `json:"start_delay_ms,omitempty"`

	Seconds         float64 `json:"seconds"`
	Runs            int64   `json:"runs"`              // that ended meanwhile, with all that is written about them
	NotRun          int64   `json:"not_run,omitempty"` // records that say that something was not run
	RunsPerSecond   float64 `json:"runs_per_second"`
	CPUPerRun       float64 `json:"cpu_ms_per_run"`
	Cores           float64 `json:"cores"` // that this process used
	Revisions       int64   `json:"revisions"`
	RevisionsPerRun float64 `json:"revisions_per_run"`
	BytesPerRun     float64 `json:"bytes_per_run"`
	HeapPerJob      float64 `json:"heap_bytes_per_job,omitempty"`
	Definition      int     `json:"definition_bytes_per_job,omitempty"`

	Takeover *takeover `json:"takeover,omitempty"`

	OtherCores float64 `json:"other_cores"` // that other processes used meanwhile, or that the machine was not given
	Load       float64 `json:"load_before"` // of the machine, over the minute before
}

// delay is the start of the handler minus the scheduled time, of those that started, in milliseconds.
type delay struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// cost writes what happened from one sample to another.
func (r *result) cost(from, to sample) {
	wall := to.at.Sub(from.at)
	own, machine := to.own-from.own, to.machine-from.machine
	r.Seconds = wall.Seconds()
	r.Runs = to.finished - from.finished
	r.NotRun = to.notRun - from.notRun
	r.RunsPerSecond = float64(r.Runs) / wall.Seconds()
	r.Cores = own.Seconds() / wall.Seconds()
	r.OtherCores = max(machine-own, 0).Seconds() / wall.Seconds()
	r.Revisions = to.revision - from.revision
	if r.Runs == 0 {
		return
	}
	runs := float64(r.Runs)
	r.CPUPerRun = float64(own) / float64(time.Millisecond) / runs
	r.RevisionsPerRun = float64(r.Revisions) / runs
	r.BytesPerRun = float64(to.bytes-from.bytes) / runs
}
