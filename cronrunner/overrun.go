package cronrunner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// A run that goes on for longer than its job's alert allows is noticed by its owner, which is the one that surely
// knows that it goes on. It writes that into the job's status; whoever leads tells it.

// watchOverrun has that noticed of a run of ours, until stop is called, which waits.
func (as *attempts) watchOverrun(a *attempt) (stop func()) {
	if a.job.Alert.Overrun == 0 {
		return func() {}
	}
	begun := firstStart(&a.owned.Run)
	owned, view := a.owned, a.view // the attempt's own change
	in := begun.Add(a.job.Alert.Overrun).Sub(as.s.cfg.Now())
	ctx, cancel := context.WithCancel(as.recording)
	stopped := make(chan struct{})
	go func() { // until stop
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-time.After(in):
			as.overrun(ctx, owned, begun, view)
		}
	}()
	return func() { cancel(); <-stopped }
}

// overrun writes that a run of ours goes on for too long, and tells the loop, if there is one.
func (as *attempts) overrun(ctx context.Context, owned state.Owned, begun time.Time, view state.View) {
	job := owned.Run.Job
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		now, opened, err := as.s.store.Overrun(ctx, owned, begun, view)
		switch {
		case err == nil && opened:
			as.s.noteOpened(job, state.Incident{Kind: state.AlertOverrun, Run: owned.Run.ID, Since: begun})
			as.mu.Lock()
			listener := as.listener
			as.mu.Unlock()
			if listener != nil {
				listener(ended{job: job, view: now}) // it has not, but the job's status is another
			}
			return
		case err == nil, ctx.Err() != nil, errors.Is(err, state.ErrLocked), errors.Is(err, state.ErrStatusReplaced):
			return // said before, or the run's end was faster, or it is somebody else's to say
		}
		as.s.log.Warn("that a run goes on for too long is not recorded, trying again", zap.String("job", job), zap.String("run", owned.Run.ID), zap.Error(err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// firstStart is when a run's first attempt began, of those that are on record.
func firstStart(r *state.Run) time.Time {
	if len(r.Attempts) > 0 {
		return minTime(r.Attempts[0].StartedAt, r.StartedAt)
	}
	return r.StartedAt
}

// lookElsewhere is how often the leader looks at jobs with runs at other instances that may alert meanwhile.
const lookElsewhere = 5 * time.Second

// lookAtForeign has the jobs read anew with a run at another instance that may go on for too long: nothing else
// would tell the leader what its owner has written.
func (t *term) lookAtForeign() {
	if t.watchingLocks == nil || time.Since(t.lookedElsewhere) < lookElsewhere {
		return
	}
	t.lookedElsewhere = time.Now()
	for _, js := range t.jobs {
		if len(js.foreign) > 0 && js.job != nil && js.job.Alert.Overrun > 0 {
			js.reload = true
			t.enqueue(js)
		}
	}
}
