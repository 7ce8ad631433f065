package cronrunner

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// Claiming ahead. A claim takes a round trip, and a burst of them takes many, so jobs that are claimed when
// their second strikes are late by the whole burst. A burst is claimed before it is due instead, early enough
// for its last claim to be durable by then, and its runs start on time without asking etcd anything. Such a
// claim is one like any other; its record says that the run starts at its scheduled time, and its end corrects
// that. If this instance dies in between, the run is one whose instance was lost. If the job is paused in
// between, the run is canceled before it begins.

const (
	// maxLead is how long before it is due a burst is claimed at most.
	maxLead = 2 * time.Second
	// fewJobs are claimed as fast as one: in one transaction.
	fewJobs = 16
	// minLead is what a burst needs beside the time of its claims: a pause of etcd's disk or of a garbage
	// collection.
	minLead = 100 * time.Millisecond
	// slowClaim is the time of a claim before any burst was measured.
	slowClaim = 500 * time.Microsecond
)

// errPaused is why a run that was claimed ahead does not begin.
var errPaused = errors.New("the job was paused before the run began")

// pace is how long a claim takes in a burst, as measured. The zero value knows nothing yet. Safe for
// concurrent use.
type pace struct{ perClaim atomic.Int64 }

// measured takes the time of a transaction and the mutations in it. Several are on their way at once, so a burst
// is faster than that; the lead is as much longer.
func (p *pace) measured(took time.Duration, mutations int) {
	if mutations <= fewJobs {
		return
	}
	sample := int64(took) / int64(mutations)
	was := p.perClaim.Load()
	if was == 0 {
		was = sample
	}
	p.perClaim.Store(was + (sample-was)/4)
}

// lead is how long before it is due a burst of n jobs is to be claimed; 0 for few.
func (p *pace) lead(n int) time.Duration {
	if n <= fewJobs {
		return 0
	}
	per := orDefault(time.Duration(p.perClaim.Load()), slowClaim)
	return min(minLead+time.Duration(n)*per, maxLead)
}

// claimAhead has the jobs of bursts looked at whose lead has begun.
func (t *term) claimAhead(now time.Time) {
	if wait := t.nextAhead.Sub(now); wait > 0 && wait <= glance {
		return
	}
	t.nextAhead = now.Add(glance)
	for _, b := range t.table.bursts(now, now.Add(maxLead+glance)) {
		if begin := b.at.Add(-t.s.pace.lead(b.jobs)); begin.After(now) {
			t.nextAhead = minTime(t.nextAhead, begin)
			continue
		}
		for _, e := range b.entries {
			if e.claimed.Equal(b.at) {
				continue
			}
			e.claimed = b.at
			for _, js := range e.jobs {
				js.ahead = b.at
				t.enqueue(js)
			}
		}
	}
}

// nextBurst claims the run of a job that will be due, if that is all that will be to do for it: it is idle, and
// nothing waits, is asked for, or is to be decided before.
func (t *term) nextBurst(js *jobState, now time.Time) task {
	at := js.ahead
	j, def := js.job, js.def
	st := &def.View.Status
	if at.After(now) && len(st.Live) > 0 {
		return task{} // looked at again when its run ends, which may be in time
	}
	js.ahead = time.Time{} // asked once; what comes of it otherwise is decided on time
	if !at.After(now) || len(st.Queue) > 0 || js.locked || time.Now().Before(js.lockedUntil) || t.asks[js.name] != nil {
		return task{}
	}
	verdicts := decide(j, t.situationOf(js, j.Overlap.limit()), j.clock(at))
	if len(verdicts) != 1 || verdicts[0].status != state.Running || !verdicts[0].first.Equal(j.clock(at)) {
		return task{}
	}
	return task{ahead: true, op: func() effect { return t.claim(j, def, verdicts, at) }}
}

// stopUnbegun cancels the runs of a job that were claimed ahead and have not begun.
func (as *attempts) stopUnbegun(job string, cause error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for _, x := range as.running {
		if x.job == job && !x.begun {
			x.cancel(cause)
		}
	}
}

// departure is one instant at which runs begin that were claimed ahead.
type departure struct {
	waiting int           // runs that have not begun; guarded by attempts.mu, as open is
	due     chan struct{} // closed when the instant has come
	left    chan struct{} // closed when all of them have begun, or some time after the instant
	open    bool          // left is not closed
}

// maxDeparture is how long the ends of runs wait for the beginnings of others that are due with them.
const maxDeparture = 50 * time.Millisecond

// departing has one more run begin at an instant.
func (as *attempts) departing(at time.Time) *departure {
	as.mu.Lock()
	defer as.mu.Unlock()
	d := as.departures[at]
	if d == nil {
		d = &departure{due: make(chan struct{}), left: make(chan struct{}), open: true}
		as.departures[at] = d
		wait := min(at.Sub(as.s.cfg.Now()), maxLead) // the clock may be set back meanwhile
		time.AfterFunc(wait, func() { close(d.due) })
		time.AfterFunc(wait+maxDeparture, func() {
			as.mu.Lock()
			defer as.mu.Unlock()
			as.departLocked(at, d)
		})
	}
	d.waiting++
	return d
}

// departLocked lets the ends of a departure's runs be written.
func (as *attempts) departLocked(at time.Time, d *departure) {
	if as.departures[at] == d {
		delete(as.departures, at)
	}
	if d.open {
		d.open = false
		close(d.left)
	}
}

// awaitStart waits until a run is due that was claimed ahead, or until its context ends. From then on it has
// begun.
func (as *attempts) awaitStart(x *execution, at time.Time) {
	if x.departure != nil {
		select {
		case <-x.departure.due:
		case <-x.ctx.Done():
		}
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	x.begun = true
	if d := x.departure; d != nil {
		if d.waiting--; d.waiting == 0 {
			as.departLocked(at, d)
		}
	}
}

// letOthersBegin waits until all runs have begun that are due with this one. To write its end takes a part of the
// machine that they need now, and a burst of short runs would put off its own last ones by all the writes of its
// first. One that was canceled before it was due has no others to wait for.
func (as *attempts) letOthersBegin(x *execution) {
	if x.departure != nil && isClosed(x.departure.due) {
		<-x.departure.left
	}
}
