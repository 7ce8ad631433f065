package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

func TestStatesOf(t *testing.T) {
	t.Parallel()
	at := func(change func(*state.Definition)) []string {
		def := state.Definition{SpecRev: 1, View: state.View{Status: state.JobStatus{NextRunAt: begins}}}
		change(&def)
		return statesOf(&def, begins.Add(overdueBy+time.Second))
	}
	require.Equal(t, []string{isOverdue}, at(func(*state.Definition) {}))
	require.Empty(t, at(func(d *state.Definition) { d.View.Status.NextRunAt = begins.Add(2 * time.Second) }), "late, but not by much")
	require.Equal(t, []string{isPaused}, at(func(d *state.Definition) { d.Control.Paused = true }), "what is paused is not overdue")
	require.Equal(t, []string{isRetired}, at(func(d *state.Definition) { d.Spec.Retired, d.View.Status.ConsecutiveFailures = true, 4 }))
	require.Equal(t, []string{isRunning, isWaiting, isFailing}, at(func(d *state.Definition) {
		d.View.Status.Running, d.View.Status.Pending, d.View.Status.ConsecutiveFailures = 1, 2, 3
	}))
	require.Equal(t, []string{isInvalid}, at(func(d *state.Definition) { d.Broken = state.ErrBadRecord }))
}

func TestListing(t *testing.T) {
	t.Parallel()
	entries := []entry{
		{name: "a", text: "a team=x", rate: 2},
		{name: "b", text: "b", states: []string{isFailing}, rate: .5, ms: 10, next: begins.Add(time.Hour), last: begins},
		{name: "c", text: "c team=x", states: []string{isRunning, isFailing}, rate: .9, ms: 30, next: begins, last: begins.Add(time.Minute)},
		{name: "d", text: "d", states: []string{isRetired}, rate: 1},
	}
	list := func(l listing) []string {
		names, _, _ := l.list(entries)
		return names
	}
	names, counts, total := listing{}.list(entries)
	require.Equal(t, []string{"a", "b", "c"}, names, "retired ones only when asked for")
	require.Equal(t, map[string]int{isFailing: 2, isRunning: 1, isRetired: 1}, counts)
	require.Equal(t, 3, total)
	require.Equal(t, []string{"d"}, list(listing{State: isRetired}))
	require.Equal(t, []string{"b", "c"}, list(listing{State: isFailing}))
	require.Equal(t, []string{"a", "c"}, list(listing{Search: "TEAM=X"}))
	require.Equal(t, []string{"c"}, list(listing{Search: "team=x c"}))
	require.Equal(t, []string{"c", "b", "a"}, list(listing{Sort: "next"}), "who has no next time comes last")
	require.Equal(t, []string{"c", "b", "a"}, list(listing{Sort: "last"}))
	require.Equal(t, []string{"b", "c", "a"}, list(listing{Sort: "worst"}), "who has not run comes last")
	require.Equal(t, []string{"c", "b", "a"}, list(listing{Sort: "slow"}))
	require.Equal(t, "/", listing{Sort: "name"}.address(1))
	require.Equal(t, "/?page=3&q=a+b&sort=next&state=paused", listing{Search: "a b", State: "paused", Sort: "next"}.address(3))
}

// The order is not read again for each page, and is when it is old.
func TestRoster_Age(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.job("a", state.JobStatus{})
	now := begins
	clock := func() time.Time { return now }
	var r roster
	get := func() int {
		entries, _, err := r.get(t.Context(), s.store, clock)
		require.NoError(t, err)
		return len(entries)
	}
	require.Equal(t, 1, get())
	s.job("b", state.JobStatus{})
	now = now.Add(rosterAge / 2)
	require.Equal(t, 1, get())
	now = now.Add(rosterAge)
	require.Equal(t, 2, get())
	s.job("c", state.JobStatus{})
	now = now.Add(-time.Hour) // a clock that was set back keeps nothing for long
	require.Equal(t, 3, get())
}

// Strips are read when a run has ended, and kept of so many jobs.
func TestStrips(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	def := func(name string, ran int64) state.Definition {
		return state.Definition{Spec: state.Spec{Name: name, UID: "u"}, View: state.View{Status: state.JobStatus{SucceededTotal: ran}}}
	}
	all := newStrips()
	read := func(defs ...state.Definition) [][]point {
		for {
			if points, whole := all.of(t.Context(), s.store, defs, begins); whole {
				return points
			}
		}
	}
	require.Equal(t, [][]point{{}}, read(def("a", 0)), "nothing to read")
	s.run(succeeded("a", begins, time.Second))
	require.Empty(t, read(def("a", 0))[0], "its counters say that it has not run")
	require.Len(t, read(def("a", 1))[0], 1)
	s.run(succeeded("a", begins.Add(time.Minute), time.Second))
	require.Len(t, read(def("a", 1))[0], 1, "as it was")
	require.Len(t, read(def("a", 2))[0], 2)

	// With no place to read in, what is kept is shown, and what is not is nil.
	for range stripReaders {
		all.readers <- struct{}{}
	}
	points, whole := all.of(t.Context(), s.store, []state.Definition{def("a", 3), def("b", 1)}, begins)
	require.False(t, whole)
	require.Len(t, points[0], 2)
	require.Nil(t, points[1])

	for i := range keptStrips {
		all.keep(string(rune(i)), keptStrip{used: begins.Add(time.Duration(1+i) * time.Second)})
	}
	require.Len(t, all.kept, keptStrips)
	_, known, _ := all.lookup("a u", 2, begins)
	require.False(t, known, "the one of no use for longest has gone")
}
