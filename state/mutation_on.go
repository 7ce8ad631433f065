//go:build mutation

package state

import "os"

var (
	mutateTerm       = mutation("term")
	mutateTrust      = mutation("trust")
	mutateUnlock     = mutation("unlock")
	mutateCheckpoint = mutation("checkpoint")
)

func mutation(name string) bool { return os.Getenv("ETCDCRON_MUTATION") == name }
