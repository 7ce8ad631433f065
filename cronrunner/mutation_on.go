//go:build mutation

package cronrunner

import "os"

var (
	mutateCatchUp  = os.Getenv("ETCDCRON_MUTATION") == "catch-up"
	mutateRecovery = os.Getenv("ETCDCRON_MUTATION") == "recovery"
)
