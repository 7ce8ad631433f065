package checker

import (
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Job is what the checker knows of a job.
type Job struct {
	Name    string
	Every   time.Duration // its scheduled times are the whole multiples of it since 1970, as of */n * * * * *
	From    time.Time     // after that they count
	To      time.Time     // up to and with that
	MaxRuns int64         // 0 for no limit
	Shared  bool          // its runs may overlap (overlap: allow)
	PerJob  bool          // its checkpoints are carried on until a run succeeds
	Grace   time.Duration // how long it may take to stop
	LockTTL time.Duration
}

// Kind is what an event is about.
type Kind string

// The kinds of events.
const (
	Start  Kind = "start"  // an attempt begins; Value is the checkpoint that it goes on from, 0 for none
	Beat   Kind = "beat"   // it is alive
	Told   Kind = "told"   // it was told to stop
	Asking Kind = "asking" // it is about to write the checkpoint Value
	Saved  Kind = "saved"  // that was acknowledged; Called is when it was asked for
	Write  Kind = "write"  // it has written to the fenced target, which has Accepted it or not
	End    Kind = "end"    // it ends, with an Outcome
	Stall  Kind = "stall"  // an instance got no time from the machine from Called until Mono
)

// The outcomes of an attempt.
const (
	OK     = "ok"     // the work is done
	Failed = "failed" // an error, or a panic
)

// Event is one line of the history.
type Event struct {
	Kind     Kind      `json:"kind"`
	Job      string    `json:"job,omitempty"`
	Run      string    `json:"run,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	Token    int64     `json:"token,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Mono     int64     `json:"mono"` // nanoseconds of the host's monotonic clock, which all its processes share
	Wall     time.Time `json:"wall"`
	Value    int64     `json:"value,omitempty"`
	Called   int64     `json:"called,omitempty"` // Mono of when what was acknowledged had been asked for
	Accepted bool      `json:"accepted,omitempty"`
	Outcome  string    `json:"outcome,omitempty"`
}

// Fault is something that was done from outside. What it is called is for people, but for these kinds.
type Fault struct {
	Kind     string `json:"kind"`
	Instance string `json:"instance,omitempty"` // that it was done to
	Job      string `json:"job,omitempty"`
	From     int64  `json:"from"` // Mono
	To       int64  `json:"to"`
	Note     string `json:"note,omitempty"`
}

// The kinds of faults that the checker tells apart.
const (
	Freeze = "freeze" // the process was stopped with SIGSTOP
	Unlock = "unlock" // the lock of a job was deleted by hand
	Revoke = "revoke" // the lease of a lock was revoked
	Clock  = "clock"  // the wall clock of an instance was set
)

// Record is a run's record as it stands in etcd.
type Record struct {
	state.Run

	Created, Modified int64 // create and mod revision of its key
}

// Ask is a trigger or a retry that was acknowledged: a run of that id is owed a record.
type Ask struct{ Job, Run string }

// Input is all that is known.
type Input struct {
	Jobs     []Job
	Events   []Event
	Faults   []Fault
	Records  map[string][]Record // by job
	Statuses map[string]state.JobStatus
	Asked    []Ask
	// Leftovers are keys and leases that should be gone by now.
	Leftovers []string
}
