package workload

import "time"

// What a process of the tests is told by its environment.
const (
	InstanceVariable  = "CHAOS_INSTANCE"
	DirVariable       = "CHAOS_DIR"
	EndVariable       = "CHAOS_END"       // the last instant at which anything is scheduled
	BurstVariable     = "CHAOS_BURST"     // how many jobs are due in the same second
	EndpointsVariable = "CHAOS_ENDPOINTS" // of etcd
	ClockVariable     = "CHAOS_CLOCK"     // a file with how wrong the wall clock is
	JobsVariable      = "CHAOS_JOBS"      // which jobs; see Code
	TTLVariable       = "CHAOS_TTL"       // of the leader
)

// The sets of jobs.
const (
	All       = ""
	HeldToo   = "held"  // all, and one that goes on for long
	BurstOnly = "burst" // those of the burst
)

// How the instances are set up.
const (
	CodeNamespace = "code"
	FileNamespace = "file"
	DrainTimeout  = 2 * time.Second
)
