package cronrunner

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// recordLimit is how long a shutdown waits, after the last handler has returned, for answers of etcd:
// ends of runs, and claims whose outcome is unknown. What is not written by then is recovered by
// whoever leads next.
const recordLimit = 3 * time.Second

// attempts are the runs that this instance executes, across terms. Safe for concurrent use.
type attempts struct {
	s      *Scheduler
	leases *state.Leases

	// The two lifetimes of a process's runs: handlers ends those that the drain limit has found running,
	// recording ends the talk with etcd about them. They are fields since they are what this type is for.
	handlers  context.Context //nolint:containedctx // see above
	recording context.Context //nolint:containedctx // see above
	cancel    context.CancelCauseFunc
	giveUp    context.CancelFunc

	work sync.WaitGroup // attempts until they are recorded, and the terms' operations

	mu       sync.Mutex
	running  map[string]*execution    // by job/run
	cancels  map[string]state.Request // by job/run, what is to be canceled, here or elsewhere
	claims   map[string]int           // by job; claims that are not settled
	slots    int                      // taken
	line     []*ticket                // those who wait for a slot, in order
	stopped  chan struct{}            // closed when Run's context has ended
	aborted  chan struct{}            // closed by abort
	listener func(ended)              // of the term; nil between terms

	departures map[time.Time]*departure // by instant, in UTC
}

// execution is an attempt that is being executed.
type execution struct {
	job       string
	departure *departure      // of a run that was claimed ahead; nil otherwise
	begun     bool            // its first attempt has; guarded by attempts.mu, as returned is
	ctx       context.Context //nolint:containedctx // it begins where cancel can be found, and lasts for one call
	cancel    context.CancelCauseFunc
	returned  chan struct{} // closed when the handler has returned; another one when it is called again
}

func newAttempts(s *Scheduler, leases *state.Leases) *attempts {
	as := &attempts{
		s: s, leases: leases,
		running: make(map[string]*execution), cancels: make(map[string]state.Request), claims: make(map[string]int),
		aborted: make(chan struct{}), stopped: make(chan struct{}), departures: make(map[time.Time]*departure),
	}
	as.handlers, as.cancel = context.WithCancelCause(context.Background())
	as.recording, as.giveUp = context.WithCancel(context.Background())
	return as
}

// start executes an attempt in a slot that was reserved. It is called from one of the operations in
// work, so drain has not returned; it may have found no handler running already.
func (as *attempts) start(a attempt) {
	a.owned.Scope, a.owned.Alert = a.job.Checkpoint, a.job.alert
	key := a.owned.Run.Job + "/" + a.owned.Run.ID
	x := &execution{job: a.owned.Run.Job, returned: make(chan struct{})}
	if at := a.owned.Run.StartedAt; at.After(as.s.cfg.Now()) { // it was claimed ahead
		x.departure = as.departing(at)
	} else {
		x.begun = true
	}
	x.ctx, x.cancel = context.WithCancelCause(a.trace.context(as.handlers))
	as.mu.Lock()
	as.running[key] = x
	if r, ok := as.cancels[key]; ok {
		x.cancel(cancelCause(&r))
	}
	as.mu.Unlock()
	as.work.Go(func() {
		e := as.execute(a, x)
		as.mu.Lock()
		delete(as.running, key)
		listener := as.listener
		as.mu.Unlock()
		if listener != nil {
			listener(e)
		}
	})
}

// claim notes that a claim of a job is on its way, until settled is called.
func (as *attempts) claim(job string) (settled func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.claims[job]++
	return func() {
		as.mu.Lock()
		defer as.mu.Unlock()
		if as.claims[job]--; as.claims[job] == 0 {
			delete(as.claims, job)
		}
	}
}

// claiming reports whether a claim of a job is not settled, in this term or an earlier one.
func (as *attempts) claiming(job string) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return as.claims[job] > 0
}

// has reports whether a run is being executed here.
func (as *attempts) has(job, run string) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	_, ok := as.running[job+"/"+run]
	return ok
}

// listen tells the ends of attempts to f, which must not block for long; nil to nobody.
func (as *attempts) listen(f func(ended)) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.listener = f
}

// drain lets handlers run until limit, then ends their contexts and waits for them, and for what etcd has
// yet to answer. A claim that is confirmed meanwhile is a run like any other. When no handler runs and
// etcd does not answer, it does not wait for the limit.
func (as *attempts) drain(limit time.Duration) {
	end := time.Now().Add(limit)
	if n := as.calling(); n > 0 {
		as.s.log.Info("draining: waiting for running runs", zap.Int("running", n), zap.Duration("limit", limit))
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	all := make(chan struct{})
	waiting.Go(func() { as.work.Wait(); close(all) })

	for time.Now().Before(end) && !isClosed(as.aborted) {
		handlers := make(chan struct{})
		waiting.Go(func() { as.waitHandlers(); close(handlers) })
		if !as.within(time.Until(end), handlers) || as.within(min(time.Until(end), recordLimit), all) || as.calling() == 0 {
			break
		}
	}
	as.cancel(ErrDraining)
	as.waitHandlers()
	as.within(recordLimit, all)
	as.giveUp()
}

// stopping says that Run's context has ended: from here on abort counts.
func (as *attempts) stopping() {
	as.mu.Lock()
	defer as.mu.Unlock()
	close(as.stopped)
}

// abort ends the handlers' contexts, and makes drain wait for nothing more but them, now or later.
func (as *attempts) abort() {
	as.mu.Lock()
	defer as.mu.Unlock()
	if isClosed(as.stopped) && !isClosed(as.aborted) {
		close(as.aborted)
		as.cancel(ErrDraining)
	}
}

// calling is how many handlers are being called.
func (as *attempts) calling() (n int) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, x := range as.running {
		if !isClosed(x.returned) {
			n++
		}
	}
	return n
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waitHandlers returns when no handler is being called.
func (as *attempts) waitHandlers() {
	for {
		var next chan struct{}
		as.mu.Lock()
		for _, x := range as.running {
			if !isClosed(x.returned) {
				next = x.returned
			}
		}
		as.mu.Unlock()
		if next == nil {
			return
		}
		<-next
	}
}

// within reports whether done was closed within limit, and before anybody had enough.
func (as *attempts) within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(max(limit, 0))
	defer timer.Stop()
	aborted := as.aborted
	if isClosed(aborted) {
		aborted = nil // the limits after that are short enough
	}
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	case <-aborted:
		return false
	}
}
