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
)

// How the instances are set up.
const (
	CodeNamespace = "code"
	FileNamespace = "file"
	LeaderTTL     = 2 * time.Second
	DrainTimeout  = 2 * time.Second
)
