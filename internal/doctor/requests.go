package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// standsLong is how long a request may wait for a leader to act on it.
const standsLong = time.Minute

// requests looks for what people have asked for and nobody has acted on. A backfill stands until all of it has begun,
// and a cancel until its run has stopped.
func (e *examination) requests(ctx context.Context) {
	all, err := e.Store.Requests(ctx)
	if err != nil {
		e.blind("requests", "the requests", err)
		return
	}
	now, long := e.Now(), 0
	for i := range all {
		r := &all[i]
		waited := now.Sub(r.At)
		if waited < standsLong || r.Kind == state.AskBackfill {
			continue
		}
		if long++; long > maxKeys {
			continue
		}
		id, hint := r.ID, "etcdcron cancel "+r.Job+" "+r.ID+" takes it back"
		if r.Kind == state.AskCancel {
			id, hint = r.Run, "its instance may not hear, or the job not heed it: see that instance's log"
		}
		if !e.leads {
			hint = "it is acted on as soon as an instance leads"
		}
		what := fmt.Sprintf("the %s %s of job %s", r.Kind, id, r.Job)
		if r.Kind == state.AskResign {
			what, hint = fmt.Sprintf("the request that the leader of term %d resigns", r.Term), "see the log of the instance that leads; stopping it has another lead"
		}
		e.sayf(Warning, "requests", hint, "%s stands since %s", what, term.Ago(r.At, now))
	}
	switch {
	case long > maxKeys:
		e.sayf(Warning, "requests", "etcdctl get --prefix "+e.Store.Keys().Requests(), "and %d more", long-maxKeys)
	case long == 0:
		e.sayf(OK, "requests", "", "none waits for longer than %s", term.Elapsed(standsLong))
	}
}
