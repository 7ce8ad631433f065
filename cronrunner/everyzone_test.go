package cronrunner

import (
	"archive/zip"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every zone of the database, at each of its changes in 20 years: what is due around it agrees with the
// reference, and over the whole time the next time is always later than the one before. It logs the longest that
// one question has taken.
func TestEveryZoneOfTheDatabase(t *testing.T) {
	t.Parallel()
	daily := func(minute, hour map[int]bool) slowCron {
		return slowCron{
			second: set(0), minute: minute, hour: hour,
			dom: upTo(1, 31), month: upTo(1, 12), dow: upTo(0, 6), domStar: true, dowStar: true,
		}
	}
	exprs := []string{"30 2 * * *", "15 0,1,23 * * *", "*/30 1-3 * * *", "0 * * * *"}
	crons := []slowCron{
		daily(set(30), set(2)), daily(set(15), set(0, 1, 23)), daily(set(0, 30), upTo(1, 3)), daily(set(0), upTo(0, 23)),
	}
	begin, end := time.Date(2006, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	zones, changes, questions := 0, 0, 0
	var longest time.Duration
	for _, name := range zoneNames(t) {
		location, err := loadZone(name)
		if err != nil {
			continue // an abbreviation, which is refused
		}
		zones++
		for at := begin; at.Before(end); changes++ {
			_, change := at.In(location).ZoneBounds()
			if change.IsZero() || change.After(end) {
				break
			}
			at = change.UTC()
			n := changes % len(exprs) // in turn: each looks at thousands
			s, err := ParseSchedule(exprs[n], name)
			require.NoError(t, err)
			from, to := at.Add(-5*time.Hour), at.Add(26*time.Hour)
			requireAgrees(t, s, crons[n].due(location, from, to, time.Minute), from, to)
		}
		weekly, err := ParseSchedule("30 2 * * 0", name)
		require.NoError(t, err)
		for at := begin; at.Before(end); questions++ {
			asked := time.Now()
			next := weekly.Next(at)
			took := time.Since(asked)
			for range 3 { // the machine may have had something else to do
				asked = time.Now()
				require.Equal(t, next, weekly.Next(at))
				took = min(took, time.Since(asked))
			}
			longest = max(longest, took)
			require.True(t, next.After(at), "%s: %s after %s", name, next, at)
			at = next
		}
	}
	require.Greater(t, zones, 400)
	t.Logf("%d zones, %d changes looked at, %d times asked for the next time, which took %s at most", zones, changes, questions, longest)
}

func set(values ...int) map[int]bool {
	s := map[int]bool{}
	for _, v := range values {
		s[v] = true
	}
	return s
}

func upTo(first, last int) map[int]bool {
	s := map[int]bool{}
	for v := first; v <= last; v++ {
		s[v] = true
	}
	return s
}

// zoneNames are the names in the database that comes with Go.
func zoneNames(t *testing.T) (names []string) {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // where the tests run, Go is
	if err != nil {
		t.Skip("the database of Go is not here: ", err)
	}
	defer r.Close()
	for _, f := range r.File {
		if !f.FileInfo().IsDir() {
			names = append(names, f.Name)
		}
	}
	return names
}
