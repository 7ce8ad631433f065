package inspect

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// Whatever the filter, the parts are all jobs that it takes, each once and in order.
func TestJobs(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	store := state.NewStore(client, keys, state.StoreConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	put := func(key, value string) {
		_, err := client.Put(ctx, key, value)
		require.NoError(t, err)
	}
	for i := range 60 {
		name := fmt.Sprintf("job%02d", i)
		status := `{}`
		if i%3 == 0 {
			status = `{"running":1,"consecutive_failures":2}`
		}
		put(keys.Status(name), status)
		put(keys.Spec(name), fmt.Sprintf(`{"name":%q,"schedule":"@daily","labels":{"n":"%d"},"retired":%t}`, name, i%2, i%10 == 9))
		if i%4 == 0 {
			put(keys.Control(name), `{"paused":true}`)
		}
	}
	put(keys.Status("job60"), `broken`)
	put(keys.Spec("job60"), `broken`)
	for name, tc := range map[string]struct {
		filter JobFilter
		want   int
	}{
		"all":              {JobFilter{}, 55},
		"and the retired":  {JobFilter{Retired: true}, 61},
		"running":          {JobFilter{Running: new(true), Retired: true}, 20},
		"not running":      {JobFilter{Running: new(false), Retired: true}, 41},
		"failing":          {JobFilter{Failing: new(true), Retired: true}, 20},
		"paused":           {JobFilter{Paused: new(true), Retired: true}, 15},
		"labeled":          {JobFilter{Labels: map[string]string{"n": "1"}, Retired: true}, 30},
		"labeled so, once": {JobFilter{Labels: map[string]string{"n": "1", "m": ""}}, 0},
		"named":            {JobFilter{Name: "OB1", Retired: true}, 10},
		"all of it":        {JobFilter{Name: "0", Paused: new(true), Running: new(true), Labels: map[string]string{"n": "0"}, Retired: true}, 1},
	} {
		for _, limit := range []int{1, 7, 100} {
			seen, after := []string{}, ""
			for {
				jobs, next, err := Jobs(ctx, store, after, limit, tc.filter, noon)
				require.NoError(t, err)
				require.LessOrEqual(t, len(jobs), limit)
				for i := range jobs {
					seen = append(seen, jobs[i].Name)
				}
				if after = next; after == "" {
					break
				}
			}
			require.Len(t, seen, tc.want, "%s, %d at once", name, limit)
			require.IsIncreasing(t, append([]string{""}, append(seen, "~")...), name)
		}
	}
}
