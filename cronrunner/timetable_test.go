package cronrunner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func dueAt(t *timetable, now time.Time) []string {
	var names []string
	t.due(now, func(js *jobState, _ time.Time) { names = append(names, js.name) })
	slices.Sort(names)
	return names
}

func addJob(t require.TestingT, table *timetable, name, schedule string, now time.Time) {
	table.add(&jobState{name: name, job: mustCompile(t, Job{Schedule: schedule})}, now)
}

func TestTimetableSharesEqualSchedules(t *testing.T) {
	table := newTimetable()
	for i := range 1000 {
		addJob(t, table, fmt.Sprint(i), "0 0 * * *", noon)
	}
	addJob(t, table, "other", "0 13 * * *", noon)
	require.Len(t, table.byTime, 2)
	require.Equal(t, noon.Add(time.Hour), table.next())
	require.Equal(t, []string{"other"}, dueAt(table, noon.Add(time.Hour)))
	require.Len(t, dueAt(table, noon.Add(12*time.Hour)), 1000)
}

func TestTimetableEmpty(t *testing.T) {
	require.True(t, newTimetable().next().IsZero())
	require.Empty(t, dueAt(newTimetable(), noon))
}

// Against a plain list: what is due, and when the next is.
func TestTimetableAgainstAList(t *testing.T) {
	schedules := []string{"* * * * * *", "*/3 * * * * *", "*/7 * * * * *", "* * * * *", "30 * * * * *", "0 13 * * *"}
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		table := newTimetable()
		type item struct {
			j    *job
			next time.Time
		}
		list := map[string]*item{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				name := fmt.Sprint("j", len(list))
				j := mustCompile(t, Job{Schedule: rapid.SampledFrom(schedules).Draw(t, "schedule")})
				// An entry that exists already may be due earlier than the newcomer's own next time.
				next := j.schedule.Next(now)
				for _, other := range list {
					if other.j.schedule.String() == j.schedule.String() {
						next = other.next
					}
				}
				list[name] = &item{j, next}
				table.add(&jobState{name: name, job: j}, now)
				continue
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "step")) * time.Second)
			var want []string
			for name, it := range list {
				if !it.next.After(now) {
					want = append(want, name)
					it.next = it.j.schedule.Next(now)
				}
			}
			slices.Sort(want)
			require.Equal(t, want, dueAt(table, now))
		}
	})
}
