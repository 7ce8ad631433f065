package web

import (
	"context"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Bounds of the strips that are kept, and of how they are read.
const (
	keptStrips   = 2000                  // jobs whose last runs are kept in memory
	stripReaders = 8                     // jobs whose last runs are read at once, for all pages
	stripBudget  = 30 * time.Millisecond // after which a page begins to read no more of them; the next one has them
)

// strips keeps the last runs of jobs, in short. They are read again when the job's counters have moved.
type strips struct {
	readers chan struct{}

	mu   sync.Mutex
	kept map[string]keptStrip
}

// keptStrip is what was read of a job, and when it was last of use.
type keptStrip struct {
	mark   int64 // of the status at which it was read
	points []point
	used   time.Time
}

func newStrips() *strips {
	return &strips{readers: make(chan struct{}, stripReaders), kept: make(map[string]keptStrip)}
}

// markOf changes whenever a run of the job has ended.
func markOf(st *state.JobStatus) int64 {
	return st.SucceededTotal + st.FailedTotal + st.CanceledTotal + st.SkippedTotal + st.MissedTotal
}

// lookup is what is kept of a job; current is false when it has had other runs since.
func (s *strips) lookup(uid string, mark int64, now time.Time) (points []point, known, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.kept[uid]
	if ok {
		k.used = now
		s.kept[uid] = k
	}
	return k.points, ok, ok && k.mark == mark
}

// keep takes in what was read of a job. When there is no room, the one that was of no use for longest goes.
func (s *strips) keep(uid string, k keptStrip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept[uid]; !ok && len(s.kept) >= keptStrips {
		oldest, used := "", k.used
		for other, o := range s.kept {
			if oldest == "" || o.used.Before(used) {
				oldest, used = other, o.used
			}
		}
		delete(s.kept, oldest)
	}
	s.kept[uid] = k
}

// of are the last runs of jobs, in the order of defs, each nil when nothing has been read of it in time: the page is
// not kept waiting, and what was not read then is read for the next one.
func (s *strips) of(ctx context.Context, store *state.Store, defs []state.Definition, now time.Time) (all [][]point, whole bool) {
	all = make([][]point, len(defs))
	missing := make([]int, 0, len(defs))
	for i := range defs {
		points, known, current := s.lookup(stripKey(&defs[i]), markOf(&defs[i].View.Status), now)
		if all[i] = points; known && points == nil {
			all[i] = []point{}
		}
		if !current {
			missing = append(missing, i)
		}
	}
	begin, stop := context.WithTimeout(ctx, stripBudget)
	defer stop()
	var reading sync.WaitGroup
	var mu sync.Mutex
	whole = true
	for _, i := range missing {
		reading.Go(func() {
			points, err := s.read(ctx, begin, store, &defs[i], now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				whole = false
				return
			}
			all[i] = points
		})
	}
	reading.Wait()
	return all, whole
}

func stripKey(def *state.Definition) string { return def.Spec.Name + " " + def.Spec.UID }

// read reads the last runs of a job, in one of the places for that, if it can begin before begin ends.
func (s *strips) read(ctx, begin context.Context, store *state.Store, def *state.Definition, now time.Time) ([]point, error) {
	select {
	case s.readers <- struct{}{}:
		defer func() { <-s.readers }()
	case <-begin.Done():
		return nil, begin.Err()
	}
	points := []point{}
	if mark := markOf(&def.View.Status); mark > 0 {
		page, err := store.History(ctx, def.Spec.Name, "", stripRuns+maxUnended)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			if page.Runs[i].Status.Final() {
				points = append(points, pointOf(&page.Runs[i]))
			}
		}
		points = points[:min(len(points), stripRuns)]
	}
	s.keep(stripKey(def), keptStrip{mark: markOf(&def.View.Status), points: points, used: now})
	return points, nil
}

// maxUnended is how many runs that go on are looked past.
const maxUnended = 5
