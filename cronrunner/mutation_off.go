//go:build !mutation

package cronrunner

// Deliberate faults, as those in state: built with the tag mutation, test/chaos switches one of them on.
const (
	mutateCatchUp  = false // the first of the times that are late is forgotten
	mutateRecovery = false // runs of lost instances are left alone
)
