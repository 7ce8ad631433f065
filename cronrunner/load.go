package cronrunner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// load has the jobs that are not loaded yet loaded, a chunk at a time and several chunks at once.
func (t *term) load(jobs map[string]*job) {
	var names []string
	for name, j := range jobs {
		if js := t.jobs[name]; js != nil && js.job != nil {
			continue
		}
		// One that was retired starts anew: what is still under way for it is applied by name.
		t.jobs[name] = &jobState{name: name, job: j, working: true} // until it is loaded
		names = append(names, name)
	}
	slices.Sort(names) // neighbors are read together
	t.toLoad = slices.AppendSeq(t.toLoad, slices.Chunk(names, loadChunk))
}

// loadMore begins to load what is still to be loaded, as much as may be on its way at once.
func (t *term) loadMore() {
	for ; len(t.toLoad) > 0 && t.loading < maxLoading; t.loading++ {
		chunk := t.toLoad[0]
		t.toLoad = t.toLoad[1:]
		t.operate(func() effect {
			loaded := t.loadJobs(chunk)
			return func(t *term) error {
				t.loading--
				return loaded(t)
			}
		})
	}
}

// retireAgain is the pause before jobs that are not ours are looked for again, after a failure.
const retireAgain = 15 * time.Second

// loadJobs reads a chunk of jobs and brings their specs in etcd up to date. Jobs that could not be read
// or written are tried again one by one.
func (t *term) loadJobs(names []string) effect {
	defs, err := t.s.store.Definitions(t.s.attempts.recording, names)
	jobs := t.s.registered(names)
	faults := make(map[string]error, len(names))
	for _, name := range names {
		if faults[name] = err; err == nil {
			defs[name], faults[name] = t.define(jobs[name], defs[name])
		}
	}
	return func(t *term) error {
		now := t.now()
		for _, name := range names {
			js := t.jobs[name]
			js.working = false
			t.table.add(js, now)
			if err := t.loaded(js, defs[name], faults[name]); err != nil {
				return err
			}
			t.enqueue(js)
		}
		return nil
	}
}

// reloadJob reads one job anew.
func (t *term) reloadJob(name string) effect {
	defs, err := t.s.store.Definitions(t.s.attempts.recording, []string{name})
	jobs := t.s.registered([]string{name})
	def := defs[name]
	if j := jobs[name]; err == nil && j != nil {
		def, err = t.define(j, def)
	}
	return func(t *term) error { return t.loaded(t.jobs[name], def, err) }
}

// loaded takes over a job's definition as it was read, or has it read again later.
func (t *term) loaded(js *jobState, def state.Definition, err error) error {
	if errors.Is(err, state.ErrNotLeading) {
		return err
	}
	if err == nil && def.Broken != nil {
		err = def.Broken // until somebody mends the key; the other jobs go on
	}
	if err != nil {
		js.reload = true
		return t.settled(js, state.View{}, err)
	}
	t.noteResumed(js, &def.Control)
	js.def, js.locked = def, false
	st := def.View.Status
	js.recover = len(st.Live) > 0 || js.job == nil && len(st.Queue) > 0
	return t.settled(js, state.View{}, nil)
}

// define brings a job's spec and status in etcd up to date, if they are not.
func (t *term) define(j *job, was state.Definition) (state.Definition, error) {
	if was.Broken != nil {
		return was, nil //nolint:nilerr // the caller looks at it
	}
	spec, status, changed := definition(j, was, t.s.cfg.Source, t.now().UTC().Truncate(time.Second))
	if !changed {
		return was, nil
	}
	return t.s.store.Define(t.s.attempts.recording, t.held, was, spec, status)
}

// definition is what a job's spec and status should be, given what they are. A new job, one whose
// schedule was edited and one that comes back begin with the times after now: nothing before is caught
// up.
func definition(j *job, was state.Definition, source string, wall time.Time) (spec state.Spec, status state.JobStatus, changed bool) {
	now := j.clock(wall)
	spec = specOf(j)
	spec.Source = source
	spec.UID, spec.CreatedAt, spec.UpdatedAt = was.Spec.UID, was.Spec.CreatedAt, wall
	status = was.View.Status
	switch {
	case was.SpecRev == 0 || was.Spec.UID == "":
		spec.UID, spec.CreatedAt = state.NewUID(wall), wall
		status = state.JobStatus{UID: spec.UID}.Decided(now)
	case status.UID != spec.UID: // of an earlier job of that name, or deleted by hand
		status = state.JobStatus{UID: spec.UID}.Decided(now)
	case was.Spec.Retired:
		status = status.Decided(now)
		status.Alerting = nil
	case !sameSchedule(&was.Spec, &spec):
		status = status.Decided(now)
	case was.Spec.Hash == spec.Hash:
		return was.Spec, status, false
	}
	status.NextRunAt = j.nextDue(wall, status.Cursor, j.runsLeft(&status))
	return spec, status, true
}

// sameSchedule reports whether two specs yield the same scheduled times. Jitter changes none of them, only when
// they are due.
func sameSchedule(a, b *state.Spec) bool {
	return a.Schedule == b.Schedule && a.TimeZone == b.TimeZone && a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.MaxRuns == b.MaxRuns
}

// specOf is what a job's definition says. Its hash does not cover where the definition came from: two
// instances that name the same file differently agree.
func specOf(j *job) state.Spec {
	spec := state.Spec{
		Name:     j.Name,
		Schedule: j.schedule.String(), TimeZone: j.schedule.Zone(),
		Description: j.Description, Target: j.Target,
		Start: j.Start.UTC(), End: j.End.UTC(), MaxRuns: j.MaxRuns,
		Jitter: state.Duration(j.Jitter), Delay: state.Duration(j.delay),
		Overlap: string(j.Overlap.Policy), Limit: j.Overlap.Limit,
		CatchUp: string(j.CatchUp.Policy), CatchUpMax: j.CatchUp.Limit, Window: state.Duration(j.CatchUp.Window),
		Recovery: string(j.Recovery.Policy), Recoveries: j.Recovery.Max,
		Checkpoint: j.Checkpoint, Retry: j.Retry.spec(), Alert: j.alert,
		Timeout: state.Duration(j.Timeout), LockTTL: state.Duration(j.LockTTL), Grace: state.Duration(j.Grace),
		Labels: j.Labels,
	}
	b, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("cronrunner: %v", err)) // strings and durations only
	}
	sum := sha256.Sum256(b)
	spec.Hash = hex.EncodeToString(sum[:8])
	return spec
}

// retire has the jobs in etcd that are not among ours marked as retired, and the runs that they left
// behind recovered. It may take long, so it does not count among the operations whose answers the
// leader's heart waits for.
func (t *term) retire() {
	t.s.attempts.work.Go(func() { t.tell(t.findRetired()) })
}

func (t *term) findRetired() effect {
	ctx, cancel := context.WithTimeout(t.s.attempts.recording, time.Minute)
	defer cancel()
	all, err := t.s.store.Jobs(ctx)
	ours, _ := t.s.snapshot()
	var left, gone []state.Definition
	for _, def := range all {
		if ours[def.Spec.Name] != nil || def.Broken != nil || def.SpecRev == 0 {
			continue
		}
		if !def.Spec.Retired {
			spec := def.Spec
			spec.Retired = true
			spec.UpdatedAt = t.now().UTC().Truncate(time.Second)
			status := def.View.Status
			status.NextRunAt, status.Alerting = time.Time{}, nil
			defined, fault := t.s.store.Define(t.s.attempts.recording, t.held, def, spec, status)
			if err = errors.Join(err, fault); fault != nil {
				continue
			}
			def = defined
		}
		if st := def.View.Status; len(st.Live)+len(st.Queue) > 0 {
			left = append(left, def)
		} else {
			gone = append(gone, def)
		}
	}
	return func(t *term) error {
		if errors.Is(err, state.ErrNotLeading) {
			return err
		}
		if err != nil {
			t.s.retrying("job", err)
			t.log.Warn("jobs that are no longer ours could not all be looked at, trying again", zap.Error(err))
			t.retireAt = time.Now().Add(retireAgain)
		}
		for _, def := range gone {
			if t.jobs[def.Spec.Name] == nil {
				t.s.observer.Observe(Retired{Job: def.Spec.Name})
			}
		}
		for _, def := range left {
			if t.jobs[def.Spec.Name] == nil {
				js := &jobState{name: def.Spec.Name, def: def, recover: true}
				t.jobs[def.Spec.Name] = js
				t.enqueue(js)
			}
		}
		return nil
	}
}
