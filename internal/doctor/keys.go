package doctor

import (
	"context"
	"strings"
)

// leases looks for keys that ought to go with their process and would not.
func (e *examination) leases(ctx context.Context) {
	found := 0
	for _, part := range []struct {
		prefix, means string
		level         Level
	}{
		{e.Store.Keys().Candidates(), "nobody else can lead while it is there", Problem},
		{e.Store.Keys().Locks(), "its job starts nothing while it is there", Problem},
		{e.Store.Keys().Instances(), "it stands for no process that lives", Warning},
	} {
		keys, err := e.Store.Unleased(ctx, part.prefix)
		if err != nil {
			e.blind("leases", part.prefix, err)
			return
		}
		found += len(keys)
		for i, key := range keys {
			if i == maxKeys {
				e.sayf(part.level, "leases", "etcdctl get --prefix --keys-only "+part.prefix, "and %d more under %s", len(keys)-i, part.prefix)
				break
			}
			e.sayf(part.level, "leases", "etcdctl del "+key, "%s has no lease, so it does not go by itself: %s. It was restored from a backup or put there by a tool",
				strings.TrimPrefix(key, e.Root), part.means)
		}
	}
	if found == 0 {
		e.sayf(OK, "leases", "", "whatever stands for a process goes with it")
	}
}

// maxKeys is how many keys of a kind are named.
const maxKeys = 5
