package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

const (
	rosterJobs        = 20_000           // jobs that are looked at, by name; a page says so when there are more
	rosterNamesAtOnce = 1000             // whose names are read at once
	rosterChunk       = 118              // that are read at once, in one transaction
	rosterReaders     = 4                // parts that are read at once
	rosterAge         = time.Second      // how old the order may be, at least
	rosterRest        = 5                // and how many times as old as what it took to read
	overdueBy         = 30 * time.Second // after which a job that has not started is overdue
)

// The states of a job, as a filter knows them. A job can be in several.
const (
	isRunning = "running"
	isWaiting = "waiting"
	isPaused  = "paused"
	isFailing = "failing"
	isOverdue = "overdue"
	isInvalid = "invalid"
	isRetired = "retired"
)

var jobStates = []string{isRunning, isWaiting, isPaused, isFailing, isOverdue, isInvalid, isRetired}

// statesOf are the states that a job is in.
func statesOf(def *state.Definition, now time.Time) []string {
	st := &def.View.Status
	var in []string
	add := func(is bool, name string) {
		if is {
			in = append(in, name)
		}
	}
	add(def.Broken != nil, isInvalid)
	add(def.Spec.Retired, isRetired)
	add(def.Control.Paused, isPaused)
	add(st.Running > 0, isRunning)
	add(st.Pending > 0, isWaiting)
	add(lateBy(def, now) > overdueBy, isOverdue)
	add(st.ConsecutiveFailures > 0 && !def.Spec.Retired, isFailing)
	return in
}

// lateBy is how long ago a job should have started that nothing keeps from starting.
func lateBy(def *state.Definition, now time.Time) time.Duration {
	st := &def.View.Status
	if def.Control.Paused || def.Spec.Retired || def.Broken != nil || st.Running > 0 || st.NextRunAt.IsZero() {
		return 0
	}
	return max(now.Sub(st.NextRunAt), 0)
}

// entry is what of a job decides whether and where a list has it.
type entry struct {
	name   string
	text   string // in which one searches, in small letters
	states []string
	next   time.Time
	last   time.Time
	rate   float64 // 2 when it has not run
	ms     int64
}

func entryOf(name string, def *state.Definition, now time.Time) entry {
	st := &def.View.Status
	e := entry{name: name, states: statesOf(def, now), next: st.NextRunAt, last: st.LastFinishedAt, rate: 2, ms: st.LastDurationMS}
	if rate, ok := st.SuccessRate(); ok {
		e.rate = rate
	}
	var b strings.Builder
	b.WriteString(name + " " + def.Spec.Description)
	for label, value := range def.Spec.Labels {
		b.WriteString(" " + label + "=" + value)
	}
	e.text = strings.ToLower(b.String())
	return e
}

// roster is all jobs in short, as they were a moment ago. It gives a list its order and its counts; what a page says of
// a job is read anew.
type roster struct {
	mu      sync.Mutex // held while it is read, so that all who wait read once
	entries []entry
	more    bool // there are more jobs than are looked at
	read    time.Time
	took    time.Duration
}

// get is the roster, read again when it is old. The entries must not be changed.
func (r *roster) get(ctx context.Context, store *state.Store, now func() time.Time) (entries []entry, more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	began := now()
	if age := began.Sub(r.read); age >= 0 && age < max(rosterAge, rosterRest*r.took) {
		return r.entries, r.more, nil
	}
	names, more, err := rosterNames(ctx, store)
	if err != nil {
		return nil, false, err
	}
	all, err := readEntries(ctx, store, names, began)
	if err != nil {
		return nil, false, err
	}
	r.entries, r.more, r.read = all, more, now()
	r.took = r.read.Sub(began)
	return r.entries, r.more, nil
}

// rosterNames are the names of the jobs that are looked at.
func rosterNames(ctx context.Context, store *state.Store) (names []string, more bool, err error) {
	after := ""
	for {
		some, next, err := store.JobsAfter(ctx, after, rosterNamesAtOnce)
		if err != nil {
			return nil, false, err
		}
		names = append(names, some...)
		if after = next; after == "" || len(names) >= rosterJobs {
			return names, after != "", nil
		}
	}
}

// readEntries reads the named jobs, some parts at once.
func readEntries(ctx context.Context, store *state.Store, names []string, now time.Time) ([]entry, error) {
	all := make([]entry, len(names))
	places := make(chan struct{}, rosterReaders)
	var reading sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for from := 0; from < len(names); from += rosterChunk {
		part := names[from:min(from+rosterChunk, len(names))]
		places <- struct{}{}
		reading.Go(func() {
			defer func() { <-places }()
			defs, err := store.Definitions(ctx, part)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
				return
			}
			for i, name := range part {
				def := defs[name]
				all[from+i] = entryOf(name, &def, now)
			}
		})
	}
	reading.Wait()
	return all, failed
}

// listing says which jobs a list has, and in which order.
type listing struct {
	Search, State, Sort string
}

// The orders of a list.
var jobOrders = map[string]func(a, b *entry) int{
	"name": func(*entry, *entry) int { return 0 },
	"next": func(a, b *entry) int { return soonest(a.next, b.next) },
	"last": func(a, b *entry) int { return b.last.Compare(a.last) },
	"worst": func(a, b *entry) int {
		return cmp.Compare(a.rate, b.rate)
	},
	"slow": func(a, b *entry) int { return cmp.Compare(b.ms, a.ms) },
}

// sortNames are the orders as a form lists them.
var sortNames = []string{"name", "next", "last", "worst", "slow"}

// soonest compares instants; none comes last.
func soonest(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// list picks and sorts entries, which come by name. counts is how many there are in each state, whatever State asks
// for; retired jobs are among the others only when they are asked for.
func (l listing) list(entries []entry) (names []string, counts map[string]int, total int) {
	wanted := strings.Fields(strings.ToLower(l.Search))
	counts = make(map[string]int, len(jobStates))
	picked := make([]*entry, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if slices.ContainsFunc(wanted, func(word string) bool { return !strings.Contains(e.text, word) }) {
			continue
		}
		for _, s := range e.states {
			counts[s]++
		}
		retired := slices.Contains(e.states, isRetired)
		if !retired {
			total++
		}
		if l.State == "" && !retired || slices.Contains(e.states, l.State) {
			picked = append(picked, e)
		}
	}
	if order := jobOrders[l.Sort]; order != nil {
		slices.SortStableFunc(picked, order)
	}
	names = make([]string, len(picked))
	for i, e := range picked {
		names[i] = e.name
	}
	return names, counts, total
}
