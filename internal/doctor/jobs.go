package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

const (
	// overdue is how long after it was due a job that nobody has decided on is one too many: a leader decides within
	// moments, after a change of leader within seconds.
	overdue = time.Minute
	// maxSuspects is how many runs that go on or wait are looked into.
	maxSuspects = 1000
)

// jobs looks at all jobs, and at the runs that their statuses say go on or wait.
func (e *examination) jobs(ctx context.Context) {
	defs, err := e.Store.Jobs(ctx)
	if err != nil {
		e.blind("jobs", "the jobs", err)
		return
	}
	var late, failing []string
	now, active, broken := e.Now(), 0, 0
	for i := range defs {
		spec, st := &defs[i].Spec, &defs[i].View.Status
		if spec.Retired {
			continue
		}
		active++
		if _, err := inspect.OutlookOf(defs[i]); err != nil {
			if broken++; broken <= maxKeys {
				e.sayf(Problem, "jobs", "mend its definition in the jobs file, and start serve again", "job %s is invalid and does not run: %v", spec.Name, err)
			}
			continue
		}
		if !defs[i].Control.Paused && !st.NextRunAt.IsZero() && now.Sub(st.NextRunAt) > overdue {
			late = append(late, spec.Name)
		}
		if st.ConsecutiveFailures >= manyFailures {
			failing = append(failing, spec.Name)
		}
	}
	if broken > maxKeys {
		e.sayf(Problem, "jobs", "etcdcron jobs names them", "and %d more are invalid", broken-maxKeys)
	}
	if len(late) > 0 {
		hint := "see the log of the instance that leads; with --max-concurrent too low, runs wait for others to end"
		if !e.leads {
			hint = "they are caught up as soon as an instance leads"
		}
		e.sayf(Problem, "jobs", hint, "%s overdue by more than %s: %s", areJobs(len(late)), term.Elapsed(overdue), named(late))
	}
	if len(failing) > 0 {
		e.sayf(Warning, "jobs", "etcdcron describe "+failing[0], "%s failed %d times or more in a row: %s", haveJobs(len(failing)), manyFailures, named(failing))
	}
	if broken == 0 && len(late) == 0 {
		e.sayf(OK, "jobs", "", "%s, each valid and none overdue", count(active, "job"))
	}
	e.runs(ctx, defs)
}

// manyFailures is how many failures in a row are worth a word.
const manyFailures = 3

func areJobs(n int) string {
	if n == 1 {
		return "1 job is"
	}
	return fmt.Sprintf("%d jobs are", n)
}

func haveJobs(n int) string {
	if n == 1 {
		return "1 job has"
	}
	return fmt.Sprintf("%d jobs have", n)
}

// suspect is a run that a status says goes on, or waits.
type suspect struct {
	job, id string
	waits   bool
	grace   time.Duration // that a run may have been without a lock, from its start
}

// runs looks whether what goes on and what waits is there. Whoever takes over a run whose instance died does so
// within moments, and between two of our reads a run may begin or end: so what looks wrong is looked at again later.
func (e *examination) runs(ctx context.Context, defs []state.Definition) {
	suspects, left := suspectsOf(defs)
	n := len(suspects)
	var wrong []string
	for look := range 2 {
		var still []suspect
		wrong = wrong[:0]
		for _, s := range suspects {
			text, err := e.wrongWith(ctx, s)
			switch {
			case err != nil:
				e.blind("runs", fmt.Sprintf("run %s of job %s", s.id, s.job), err)
				return
			case text != "":
				still, wrong = append(still, s), append(wrong, fmt.Sprintf("run %s of job %s %s", s.id, s.job, text))
			}
		}
		if suspects = still; len(suspects) == 0 || look == 1 {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.Again):
		}
		suspects = e.stillSuspect(ctx, suspects)
	}
	for i, text := range wrong {
		if i == maxKeys {
			e.sayf(Problem, "runs", "etcdcron describe shows what runs of each", "and %d more", len(wrong)-i)
			break
		}
		e.sayf(Problem, "runs", "the leader puts that right within seconds; if it stays, see the leader's log, and have it resign: etcdcron resign", "%s", text)
	}
	if left > 0 {
		e.sayf(Warning, "runs", "etcdcron top shows what runs", "only %d of the runs that go on or wait were looked at, of %d", n, n+left)
	}
	if len(wrong) == 0 {
		e.sayf(OK, "runs", "", "%s", goOn(n))
	}
}

func goOn(n int) string {
	switch n {
	case 0:
		return "none goes on or waits"
	case 1:
		return "1 goes on or waits, as its record and lock say"
	}
	return fmt.Sprintf("%d go on or wait, as their records and locks say", n)
}

// suspectsOf are the runs that statuses say go on or wait, and how many more there are.
func suspectsOf(defs []state.Definition) (suspects []suspect, left int) {
	for i := range defs {
		spec, st := &defs[i].Spec, &defs[i].View.Status
		for _, id := range st.Live {
			suspects = append(suspects, suspect{job: spec.Name, id: id, grace: time.Duration(spec.LockTTL)})
		}
		for _, id := range st.Queue {
			suspects = append(suspects, suspect{job: spec.Name, id: id, waits: true})
		}
	}
	if len(suspects) > maxSuspects {
		return suspects[:maxSuspects], len(suspects) - maxSuspects
	}
	return suspects, 0
}

// stillSuspect are those of some runs that their status still has.
func (e *examination) stillSuspect(ctx context.Context, suspects []suspect) []suspect {
	return slices.DeleteFunc(suspects, func(s suspect) bool {
		def, err := e.Store.Job(ctx, s.job)
		ids := def.View.Status.Live
		if s.waits {
			ids = def.View.Status.Queue
		}
		return err == nil && !slices.Contains(ids, s.id)
	})
}

// wrongWith says what is wrong with a run that goes on or waits; "" when nothing is.
func (e *examination) wrongWith(ctx context.Context, s suspect) (string, error) {
	r, _, err := e.Store.Run(ctx, s.job, s.id)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return "has no record, though its job's status says that it is there", nil
	case errors.Is(err, state.ErrBadRecord):
		return "has a record that cannot be read", nil
	case err != nil:
		return "", err
	case r.Status.Final():
		return "is over, though its job's status says that it is not", nil
	case s.waits || r.Status != state.Running || e.Now().Sub(r.StartedAt) < s.grace:
		return "", nil
	}
	lock, err := e.Store.LockOf(ctx, s.job, s.id)
	if err != nil || lock != nil {
		return "", err
	}
	return "has no lock: its instance, " + r.Instance + ", has died, and nobody has taken it over", nil
}
