package cronrunner

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

const (
	// glance is how often the loop looks at the wall clock when nothing is due: it notices within that
	// time that the clock was set or the machine was suspended.
	glance = 500 * time.Millisecond
	// maxOperations is how many operations of a term talk to etcd at once; what waits is packed (see state).
	maxOperations = 512
	// loadChunk is how many jobs are loaded by one operation.
	loadChunk = 100
	// maxLoading is how many chunks are loaded at once: enough to keep etcd busy, and few beside what is due.
	maxLoading = 16
	// Pauses of a job after an operation that failed; they double up to the limit.
	firstPause, maxPause = 100 * time.Millisecond, 5 * time.Second
)

// jobState is a job as the loop of a term knows it. Only the loop touches it.
type jobState struct {
	name string
	job  *job             // nil for a job that is not among ours, and only has runs to be recovered
	def  state.Definition // as it was last read or written

	// What it waits for.
	working bool          // an operation of this job is on its way; the next begins when that has ended
	look    bool          // and it is to be looked at again then
	queued  bool          // it is in the ready queue
	waits   bool          // it waits for a slot
	retryAt time.Time     // it is left alone until then
	pause   time.Duration // the last such pause, while operations fail

	// What is not as its status says.
	reload      bool      // its definition in etcd is not what we know
	floor       time.Time // times up to here have a record, though the cursor does not say so
	apart       bool      // one of the times that were decided together has a record: they are written one by one
	locked      bool      // the last claim found a lock that the status does not explain; until the next decision
	lockedUntil time.Time // likewise, of a job with runs that wait

	// Its runs that are not ours.
	recover       bool                 // it may have some whose instance is gone
	recovering    bool                 // that is being looked at
	recoverInSlot bool                 // one is to be taken over as soon as it is its turn for a slot
	foreign       []string             // locks under which runs go on elsewhere
	lostAt        map[string]time.Time // when runs were seen without their locks though their instances live
	replacing     string               // one elsewhere that we have asked to be canceled

	// Pauses, and what is to come.
	pausedSeen bool      // what the watch has last said of its control
	pausedAt   time.Time // when it was last known to be paused
	resumeSeen time.Time // when the watch has told that it was resumed; zero until it does
	resumed    time.Time // until when it was paused
	ahead      time.Time // when it will be due, if it is to be looked at before; zero if not
}

// term is one time of leadership. Everything in it is touched by its loop alone; operations run beside
// it and hand their effects back through done.
type term struct {
	s    *Scheduler
	held state.Term
	beat func()
	log  *zap.Logger

	since   time.Time
	jobs    map[string]*jobState
	table   *timetable
	ready   []*jobState // to be looked at, in order
	waiting []*jobState // due, and waiting for a slot, in order
	place   *ticket     // of the first of them in the line for slots; nil when there is none
	inHand  bool        // a slot was granted for it
	retries map[*jobState]struct{}
	toLoad  [][]string
	loading int // chunks on their way

	asks     map[string]*asks          // by job
	standing map[string]state.Standing // the same requests by their keys
	refusals []state.Standing          // for jobs that are not among ours, in order
	refusing bool                      // one is being answered

	done  chan effect   // from operations, attempts and watches
	over  chan struct{} // closed when the loop has ended
	ops   map[int]time.Time
	opSeq int

	herald *herald

	nextAhead time.Time // when to look for bursts next

	watchingLocks   context.CancelFunc
	lookedElsewhere time.Time
	retireAt        time.Time // when to look again for jobs that are not ours; zero when all were looked at
	warned          time.Time // when a job that does not advance was last named
	unnamed         int       // how many were not, since then
}

// effect is what an operation did, applied by the loop.
type effect func(*term) error

// lead is the life of a term: load the jobs, then look at whatever is due, until ctx ends. It returns as
// soon as that happens; operations whose outcome is not known yet go on, and are waited for by drain.
func (s *Scheduler) lead(ctx context.Context, lt leader.Term) error {
	t := &term{
		s: s, held: lt.Term, beat: lt.Beat, log: s.log.With(zap.Int64("term", lt.Revision)),
		since:   s.cfg.Now().UTC().Round(0), // by the wall clock alone, as scheduled times are
		jobs:    make(map[string]*jobState),
		table:   newTimetable(),
		retries: make(map[*jobState]struct{}),
		asks:    make(map[string]*asks), standing: make(map[string]state.Standing),
		done: make(chan effect, maxOperations),
		over: make(chan struct{}),
		ops:  make(map[int]time.Time),
	}
	telling, stopTelling := context.WithCancel(ctx)
	defer stopTelling()
	t.herald = newHerald(telling)
	s.observer.Observe(Elected{Term: lt.Revision})
	s.attempts.listen(func(e ended) { t.tell(func(t *term) error { t.attemptEnded(e); return nil }) })
	var err error
	defer func() {
		s.attempts.listen(nil)
		close(t.over)
		t.leaveLine()
		t.stopWatchingLocks()
		s.observer.Observe(Deposed{Term: lt.Revision, Cause: cmp.Or(context.Cause(ctx), err)})
	}()
	t.retire()
	if err = t.loop(ctx); errors.Is(err, leader.ErrResigned) {
		return nil // as asked
	}
	return err
}

// tell hands an effect to the loop. When the loop has ended it is dropped: nothing of one term reaches
// another.
func (t *term) tell(e effect) {
	select {
	case t.done <- e:
	case <-t.over:
	}
}

// loop is the term: wait for the earliest of what can happen, then do all that is due.
func (t *term) loop(ctx context.Context) error {
	jobs, changed := t.s.snapshot()
	t.load(jobs)
	defer t.followPeople(ctx)()
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := t.now()
	for {
		timer.Reset(t.untilNext())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-t.done:
			if err := e(t); err != nil {
				return err
			}
			if err := t.drainEffects(); err != nil {
				return err
			}
		case <-t.granted():
			t.place, t.inHand = nil, true
		case <-changed:
			jobs, changed = t.s.snapshot()
			t.load(jobs)
		case <-timer.C:
		}
		now := t.now()
		if by := last.Round(0).Sub(now.Round(0)); by > time.Second { // by the wall clock alone
			t.log.Warn("the wall clock was set back: nothing is due before it has passed the last scheduled time that was decided",
				zap.Duration("by", by))
		}
		last = now
		t.pass(now)
	}
}

// drainEffects applies what else has come in, so that a burst costs one pass.
func (t *term) drainEffects() error {
	for {
		select {
		case e := <-t.done:
			if err := e(t); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// pass does all that is due at now.
func (t *term) pass(now time.Time) {
	if t.answered() {
		t.beat()
	}
	t.table.due(now, func(js *jobState, last time.Time) {
		if js.def.View.Status.Cursor.Before(last) { // it was not claimed ahead
			t.enqueue(js)
		}
	})
	t.claimAhead(now)
	t.tellAgain()
	t.lookAtForeign()
	for js := range t.retries {
		if !time.Now().Before(js.retryAt) {
			delete(t.retries, js)
			t.enqueue(js)
		}
	}
	if !t.retireAt.IsZero() && time.Now().After(t.retireAt) {
		t.retireAt = time.Time{}
		t.retire()
	}
	t.loadMore()
	for len(t.waiting) > 0 && len(t.ops) < maxOperations && t.slotInHand() {
		js := t.waiting[0]
		t.waiting = t.waiting[1:]
		js.waits = false
		t.step(js, now, true)
	}
	if len(t.waiting) == 0 {
		t.leaveLine()
	}
	for len(t.ready) > 0 && len(t.ops) < maxOperations {
		js := t.ready[0]
		t.ready = t.ready[1:]
		js.queued = false
		t.step(js, now, len(t.waiting) == 0)
	}
}

// answered reports whether etcd answers our writes: if none was answered for a TTL, though some wait as
// long, somebody else should lead.
func (t *term) answered() bool {
	limit := t.s.elector.TTL()
	if time.Since(t.s.answeredAt()) <= limit {
		return true
	}
	for _, since := range t.ops {
		if time.Since(since) > limit {
			return false
		}
	}
	return true
}

func (t *term) now() time.Time { return t.s.cfg.Now().Round(0) }

func (t *term) untilNext() time.Duration {
	if len(t.ready) > 0 && len(t.ops) < maxOperations {
		return 0
	}
	next := t.table.next()
	if next.IsZero() {
		return glance
	}
	return min(max(minTime(next, t.nextAhead).Sub(t.now()), 0), glance)
}

// enqueue has the loop look at a job. It is in the queue once, however often it is asked for.
func (t *term) enqueue(js *jobState) {
	switch {
	case js.working:
		js.look = true
	case !js.queued:
		js.queued = true
		t.ready = append(t.ready, js)
	}
}

// step starts the next operation that a job needs, if it needs one: first its definition must be known,
// then its lost runs recovered, then its scheduled times decided. Unless it is its turn, a job that
// needs a slot queues up for one.
func (t *term) step(js *jobState, now time.Time, turn bool) {
	if t.jobs[js.name] != js {
		return // the job was registered anew
	}
	if js.working || time.Now().Before(js.retryAt) {
		return // it is looked at when its operation ends; t.retries has it
	}
	if js.reload {
		js.reload = false // from here on, whoever sets it has seen something that the operation may not
		t.work(js, func() effect { return t.reloadJob(js.name) })
		return
	}
	if js.recover {
		slot := js.recoverInSlot
		if slot && !t.takeSlot(js, turn) {
			return
		}
		js.recover, js.recoverInSlot, js.recovering = false, false, true // as with reload
		lostAt := js.lostAt
		t.work(js, func() effect { return t.recoverJob(js.name, js.job, lostAt, slot) })
		return
	}
	if js.job == nil || js.def.Broken != nil {
		return
	}
	next := t.nextTask(js, now)
	if next.op == nil && !js.ahead.IsZero() {
		next = t.nextBurst(js, now)
	}
	switch {
	case next.ahead:
		if !turn || !t.s.attempts.reserve() {
			return // when it is due it gets its turn
		}
	case next.claims && !t.takeSlot(js, turn):
		return
	}
	if next.op != nil {
		js.locked = false
		t.work(js, next.op)
	}
}

// followPeople follows what people ask of jobs, and which they pause and resume, until stop is called.
func (t *term) followPeople(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	t.s.attempts.work.Go(func() { t.followRequests(ctx) })
	t.s.attempts.work.Go(func() { t.followControls(ctx) })
	return stop
}

// work runs an operation of one job; a job has one at a time.
func (t *term) work(js *jobState, op func() effect) {
	js.working = true
	t.operate(func() effect {
		apply := op()
		return func(t *term) error {
			js.working = false
			js.look = true // more may be due by now
			err := apply(t)
			if js.look {
				js.look = false
				t.enqueue(js)
			}
			return err
		}
	})
}

// operate runs an operation beside the loop. It outlives the term if it must: a claim whose outcome is
// unknown is settled first.
func (t *term) operate(op func() effect) {
	t.opSeq++
	id := t.opSeq
	t.ops[id] = time.Now()
	t.s.attempts.work.Go(func() {
		apply := op()
		t.tell(func(t *term) error {
			delete(t.ops, id)
			return apply(t)
		})
	})
}

// settled takes the effect of an operation that tried to change js: what stands now, and what to do
// about an error. An error that it returns ends the term.
func (t *term) settled(js *jobState, view state.View, err error) error {
	if view.Revision > js.def.View.Revision {
		js.def.View = view
	}
	switch {
	case err == nil:
		js.pause = 0
		t.planned(js)
		t.owe(js)
		return nil
	case errors.Is(err, state.ErrNotLeading):
		return err
	case errors.Is(err, state.ErrSpecChanged), errors.Is(err, state.ErrControlChanged), errors.Is(err, state.ErrStatusReplaced),
		errors.Is(err, state.ErrRunExists):
		js.reload = true
		return nil
	default:
		t.s.retrying("job", err)
		js.pause = min(max(2*js.pause, firstPause), maxPause)
		t.retryIn(js, js.pause/2+rand.N(js.pause))
		if js.pause > 2*firstPause { // what is over at once is not worth a word
			t.warnStuck(js, err)
		}
		return nil
	}
}

// warnStuck names one job a second at most: a fault of etcd is one of every job.
func (t *term) warnStuck(js *jobState, err error) {
	if time.Since(t.warned) < time.Second {
		t.unnamed++
		return
	}
	t.log.Warn("job not advanced, trying again", zap.String("job", js.name), zap.Int("and_others", t.unnamed), zap.Error(err))
	t.warned, t.unnamed = time.Now(), 0
}

// retryIn leaves a job alone for a while.
func (t *term) retryIn(js *jobState, pause time.Duration) {
	js.retryAt = time.Now().Add(max(pause, 0))
	t.retries[js] = struct{}{}
}

func (t *term) planned(js *jobState) {
	st := js.def.View.Status
	if js.job == nil {
		if len(st.Live)+len(st.Queue) == 0 {
			t.s.observer.Observe(Retired{Job: js.name})
		}
		return
	}
	if js.def.Control.Paused {
		st.NextRunAt = time.Time{}
	}
	t.s.observer.Observe(Planned{Job: js.name, Status: st, Revision: js.def.View.Revision})
}

// attemptEnded takes the end of an attempt of this instance.
func (t *term) attemptEnded(e ended) {
	js := t.jobs[e.job]
	if js == nil {
		return
	}
	if e.view.Revision > js.def.View.Revision {
		js.def.View = e.view
	}
	js.recover = js.recover || e.interrupted
	if len(js.def.View.Status.Alerting) > 0 {
		t.planned(js)
		t.owe(js)
	}
	t.enqueue(js)
}
