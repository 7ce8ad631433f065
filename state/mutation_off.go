//go:build !mutation

package state

// Deliberate faults, of which test/chaos shows that its checker catches each. Built with the tag mutation, one of them
// can be switched on; without it, nothing is left of them.
const (
	mutateTerm       = false // a leader's writes do not compare the term
	mutateTrust      = false // a lease is trusted from the answer on, not from the request
	mutateUnlock     = false // a lock is deleted whose ever it is
	mutateCheckpoint = false // a checkpoint is written whoever owns the run
)
