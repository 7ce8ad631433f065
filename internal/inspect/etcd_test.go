package inspect

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// shelf is an etcd to put things into as they would stand there.
type shelf struct {
	t      *testing.T
	client *clientv3.Client
	keys   state.Keys
	store  *state.Store
}

func onShelf(t *testing.T) *shelf {
	t.Helper()
	client := etcdtest.Start(t).Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	return &shelf{t: t, client: client, keys: keys, store: state.NewStore(client, keys, state.StoreConfig{})}
}

func (s *shelf) put(key string, v any) {
	s.t.Helper()
	value, err := json.Marshal(v)
	require.NoError(s.t, err)
	_, err = s.client.Put(s.t.Context(), key, string(value))
	require.NoError(s.t, err)
}

// job puts a definition that was made a month before noon, and a status.
func (s *shelf) job(spec state.Spec, st state.JobStatus) {
	if spec.Schedule == "" {
		spec.Schedule = "0 * * * *"
	}
	if spec.TimeZone == "" {
		spec.TimeZone = "UTC"
	}
	if spec.CreatedAt.IsZero() {
		spec.CreatedAt = noon.AddDate(0, -1, 0)
	}
	if spec.UpdatedAt.IsZero() {
		spec.UpdatedAt = spec.CreatedAt
	}
	spec.UID = "u-" + spec.Name
	s.put(s.keys.Spec(spec.Name), spec)
	s.put(s.keys.Status(spec.Name), st)
}

// run puts a record, of a run of the schedule that has succeeded unless it says otherwise.
func (s *shelf) run(job string, at time.Time, r state.Run) {
	r.Job, r.ScheduledAt = job, at
	if r.ID == "" {
		r.ID = state.RunID(at)
	}
	if r.Status == "" {
		r.Status, r.Attempt = state.Succeeded, 1
	}
	if r.Trigger == "" {
		r.Trigger = state.BySchedule
	}
	s.put(s.keys.Run(job, r.ID), r)
}

func ids(runs []state.Run) []string {
	all := make([]string, len(runs))
	for i := range runs {
		all[i] = runs[i].Job + " " + runs[i].ID
	}
	return all
}

func hours(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }

func TestAudit(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	const job = "hourly"
	s.job(state.Spec{Name: job, UpdatedAt: hours(-20)}, state.JobStatus{Cursor: hours(-1)})
	s.run(job, hours(-30), state.Run{})
	s.run(job, hours(-12), state.Run{Status: state.Failed, Attempt: 2, Error: "it broke"})
	s.run(job, hours(-10), state.Run{Status: state.Skipped, Reason: state.ReasonPaused, Trigger: state.ByCatchUp, Count: 4, Until: hours(-7)})
	for i := range 60 { // between the record and the time that it stands for
		s.run(job, hours(-8.5).Add(time.Duration(i)*time.Second), state.Run{Trigger: state.ByHand, ID: state.RunID(hours(-8.5).Add(time.Duration(i)*time.Second)) + "-mabcdef"})
	}
	s.run(job, hours(-8), state.Run{Trigger: state.ByBackfill, ID: state.RunID(hours(-8)) + "-babcdef"})
	s.run(job, hours(-5), state.Run{})
	s.run(job, hours(-4.5), state.Run{Trigger: state.ByHand, ID: state.RunID(hours(-4.5)) + "-mabcdef"})

	for name, tc := range map[string]struct {
		at      time.Time
		finding Finding
		why     string
		runs    []string
		around  [2]float64
	}{
		"ran":                  {hours(-5), Recorded, "", []string{state.RunID(hours(-5))}, [2]float64{}},
		"failed":               {hours(-12), Recorded, "", []string{state.RunID(hours(-12))}, [2]float64{}},
		"first of a range":     {hours(-10), Recorded, "", []string{state.RunID(hours(-10))}, [2]float64{}},
		"in a range":           {hours(-8), Covered, "", []string{state.RunID(hours(-10)), state.RunID(hours(-8)) + "-babcdef"}, [2]float64{}},
		"last of a range":      {hours(-7), Covered, "", []string{state.RunID(hours(-10))}, [2]float64{}},
		"after a range":        {hours(-6), WithoutRecord, "there ought to be a record", nil, [2]float64{}},
		"not scheduled":        {hours(-4.25), NotScheduled, "it is not a scheduled time", nil, [2]float64{-5, -4}},
		"not a whole second":   {hours(-5).Add(time.Millisecond), NotScheduled, "it is not a scheduled time", nil, [2]float64{-5, -4}},
		"by hand":              {hours(-4.5), NotScheduled, "it is not a scheduled time", []string{state.RunID(hours(-4.5)) + "-mabcdef"}, [2]float64{-5, -4}},
		"before a change":      {hours(-21), BeforeChange, "changed 2024-06-02T16:00:00Z", nil, [2]float64{}},
		"no time, and changed": {hours(-21.5), NotScheduled, "as it is now; the definition was changed", nil, [2]float64{-22, -21}},
		"before the job":       {noon.AddDate(0, -2, 0), BeforeJob, "the job was made 2024-05-03T12:00:00Z", nil, [2]float64{}},
		"not decided":          {hours(0), NotYet, "the leader has not decided it yet", nil, [2]float64{}},
		"not yet":              {hours(3), NotYet, "it is due in 3h", nil, [2]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, err := s.store.Job(t.Context(), job)
			require.NoError(t, err)
			a, err := Audit(t.Context(), s.store, &def, tc.at, noon)
			require.NoError(t, err)
			require.Equal(t, tc.finding, a.Finding, a.Why)
			require.Contains(t, a.Why, tc.why)
			require.Equal(t, tc.why == "", a.Why == "")
			require.Len(t, a.Runs, len(tc.runs))
			for i, id := range tc.runs {
				require.Equal(t, id, a.Runs[i].ID)
			}
			require.Equal(t, tc.finding == Recorded || tc.finding == Covered, a.RunOf() != nil)
			if tc.around != [2]float64{} {
				require.Equal(t, hours(tc.around[0]), *a.Before)
				require.Equal(t, hours(tc.around[1]), *a.After)
			}
		})
	}
}

func TestAudit_Bounds(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	s.job(state.Spec{Name: "bounded", Start: hours(-10), End: hours(-5)}, state.JobStatus{Cursor: hours(-5)})
	s.job(state.Spec{Name: "had", MaxRuns: 3}, state.JobStatus{Cursor: hours(-5), ScheduledRunsTotal: 3})
	s.job(state.Spec{Name: "paused"}, state.JobStatus{Cursor: hours(-5)})
	s.put(s.keys.Control("paused"), state.Control{Paused: true, By: "jo", At: hours(-4.5)})
	s.job(state.Spec{Name: "gone", Retired: true, UpdatedAt: hours(-4.5)}, state.JobStatus{Cursor: hours(-5)})
	s.job(state.Spec{Name: "aged"}, state.JobStatus{Cursor: hours(-1)})
	s.run("aged", hours(-3), state.Run{})
	s.job(state.Spec{Name: "jittered", Delay: state.Duration(20 * time.Minute)}, state.JobStatus{Cursor: hours(-1)})
	s.job(state.Spec{Name: "odd", Schedule: "often"}, state.JobStatus{})

	for _, tc := range []struct {
		job     string
		at      time.Time
		finding Finding
		why     string
	}{
		{"bounded", hours(-12), NotScheduled, "the job's schedule begins 2024-06-03T02:00:00Z"},
		{"bounded", hours(-3), NotScheduled, "the job's schedule ended 2024-06-03T07:00:00Z"},
		{"had", hours(-3), NotYet, "the job has had the 3 runs that it may have"},
		{"paused", hours(-3), WhilePaused, "the job is paused by jo 4h30m ago; when it is resumed, the time is recorded as skipped"},
		{"paused", hours(3), NotYet, "it is due in 3h; the job is paused by jo 4h30m ago"},
		{"gone", hours(-3), BeforeChange, "the job is retired since"},
		{"aged", hours(-5), AgedOut, "no record of that age is kept; the oldest is of 2024-06-03T09:00:00Z"},
		{"jittered", hours(0), NotYet, "it is due 2024-06-03T12:20:00Z, in 20m: the job's part of the jitter is 20m"},
	} {
		def, err := s.store.Job(t.Context(), tc.job)
		require.NoError(t, err)
		a, err := Audit(t.Context(), s.store, &def, tc.at, noon)
		require.NoError(t, err)
		require.Equal(t, tc.finding, a.Finding, "%s: %s", tc.job, a.Why)
		require.Contains(t, a.Why, tc.why)
	}
	def, err := s.store.Job(t.Context(), "odd")
	require.NoError(t, err)
	_, err = Audit(t.Context(), s.store, &def, hours(-1), noon)
	require.Equal(t, fault.Invalid, fault.Of(err).Kind)
}

func TestMatching(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	const job = "hourly"
	s.job(state.Spec{Name: job}, state.JobStatus{})
	for i := 1; i <= 40; i++ {
		r := state.Run{}
		if i%10 == 0 {
			r.Status, r.Attempt = state.Failed, 1
		}
		s.run(job, hours(-float64(i)), r)
	}
	s.run(job, hours(-50), state.Run{Status: state.Skipped, Trigger: state.ByCatchUp, Count: 9, Until: hours(-42)})
	look := func(before string, n int, f Filter) ([]string, string) {
		runs, next, err := Matching(t.Context(), s.store, job, before, n, f)
		require.NoError(t, err)
		return ids(runs), next
	}
	at := func(n ...float64) (want []string) {
		for _, h := range n {
			want = append(want, job+" "+state.RunID(hours(-h)))
		}
		return want
	}
	got, next := look("", 2, Filter{})
	require.Equal(t, at(1, 2), got)
	got, _ = look(next, 1, Filter{})
	require.Equal(t, at(3), got)
	failed := Filter{Statuses: []state.RunStatus{state.Failed}}
	got, next = look("", 3, failed)
	require.Equal(t, at(10, 20, 30), got)
	got, next = look(next, 3, failed)
	require.Equal(t, at(40), got)
	require.Empty(t, next)
	got, _ = look("", 10, Filter{Since: hours(-3)})
	require.Equal(t, at(1, 2, 3), got)
	got, _ = look("", 10, Filter{Since: hours(-5), Until: hours(-4)})
	require.Equal(t, at(4, 5), got)
	got, _ = look("", 10, Filter{Triggers: []state.Trigger{state.ByCatchUp}})
	require.Equal(t, at(50), got)
	got, _ = look("", 10, Filter{Since: hours(-45), Until: hours(-41)})
	require.Equal(t, at(50), got, "the record stands for times since then")

	_, _, err := Matching(t.Context(), s.store, "hourli", "", 1, failed)
	require.Equal(t, fault.NotFound, fault.Of(err).Kind)
	require.Contains(t, fault.Of(err).Hint, "did you mean hourly?")
}

// A look for what is rare ends, and says where it has ended.
func TestMatching_Bound(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	s.job(state.Spec{Name: "a"}, state.JobStatus{})
	for i := range 30 {
		s.run("a", hours(-float64(i)), state.Run{})
	}
	look := looking{store: s.store, filter: Filter{Statuses: []state.RunStatus{state.Failed}}, budget: 10}
	runs, next, err := look.job(t.Context(), "a", "", 5)
	require.NoError(t, err)
	require.Empty(t, runs)
	require.Equal(t, state.RunID(hours(-9)), next)
}

func TestRecent(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	for i := range 50 { // each ran in an hour of its own, and an hour before that
		name := fmt.Sprintf("job-%02d", i)
		h := -float64(2 * i)
		st := state.JobStatus{Cursor: hours(h), LastRunID: state.RunID(hours(h)), SucceededTotal: 2}
		r := state.Run{}
		if i%20 == 0 {
			r.Status, r.Attempt, st.SucceededTotal, st.FailedTotal = state.Failed, 1, 1, 1
		}
		s.job(state.Spec{Name: name}, st)
		s.run(name, hours(h-1), state.Run{})
		s.run(name, hours(h), r)
	}
	recent := func(n int, f Filter) []string {
		runs, all, err := Recent(t.Context(), s.store, n, f)
		require.NoError(t, err)
		require.True(t, all)
		return ids(runs)
	}
	at := func(job int, h float64) string { return fmt.Sprintf("job-%02d %s", job, state.RunID(hours(h))) }
	require.Equal(t, []string{at(0, 0), at(0, -1), at(1, -2)}, recent(3, Filter{}))
	require.Equal(t, []string{at(0, 0), at(20, -40), at(40, -80)}, recent(10, Filter{Statuses: []state.RunStatus{state.Failed}}))
	require.Equal(t, []string{at(20, -40)}, recent(10, Filter{Statuses: []state.RunStatus{state.Failed}, Since: hours(-50), Until: hours(-10)}))
	require.Len(t, recent(1000, Filter{}), 100)

	// The status keeps no time of what was asked for and skipped; that it was written last does.
	s.run("job-49", hours(1), state.Run{ID: state.RunID(hours(1)) + "-mabcdef", Trigger: state.ByHand, Status: state.Skipped})
	s.put(s.keys.Status("job-49"), state.JobStatus{Cursor: hours(-98), SkippedTotal: 1})
	require.Equal(t, "job-49 "+state.RunID(hours(1))+"-mabcdef", recent(1, Filter{})[0])
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	const job, id = "slow", "20240603T110000Z"
	s.job(state.Spec{Name: job}, state.JobStatus{Live: []string{id}})
	s.run(job, hours(-1), state.Run{Status: state.Running, Attempt: 2, StartedAt: hours(-1)})
	s.put(s.keys.Progress(job, id), state.Progress{Done: 3, Total: 4})
	s.put(s.keys.Checkpoint(job, id), state.Checkpoint{Value: []byte(`{"row":3}`), UID: "u-" + job, Run: id, Attempt: 1, At: hours(-0.5)})
	_, err := s.store.Submit(t.Context(), state.Request{Kind: state.AskCancel, Job: job, Run: id, By: "jo"})
	require.NoError(t, err)

	d, err := Run(t.Context(), s.store, job, id, noon)
	require.NoError(t, err)
	require.Equal(t, int64(3), d.Progress.Done)
	require.Equal(t, &Checkpoint{Bytes: 9, Run: id, Attempt: 1, At: hours(-0.5)}, d.Checkpoint)
	require.Equal(t, "jo", d.Cancel.By)
	last, err := LastRun(t.Context(), s.store, job)
	require.NoError(t, err)
	require.Equal(t, id, last)

	asked, err := s.store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: job})
	require.NoError(t, err)
	_, err = Run(t.Context(), s.store, job, asked.ID, asked.At)
	require.Equal(t, fault.NotFound, fault.Of(err).Kind)
	require.ErrorContains(t, err, "is a trigger that nobody has acted on yet; it was asked for just now")
	_, err = Run(t.Context(), s.store, job, "20240603T100000Z", noon)
	require.ErrorContains(t, err, "has no run and no request")
	_, err = Run(t.Context(), s.store, job, "today", noon)
	require.Equal(t, fault.BadInput, fault.Of(err).Kind)
	_, err = Run(t.Context(), s.store, "slwo", id, noon)
	require.Contains(t, fault.Of(err).Hint, "did you mean slow?")

	s.job(state.Spec{Name: "idle"}, state.JobStatus{})
	s.run("idle", hours(-1), state.Run{Status: state.Skipped, Reason: state.ReasonOverlap})
	_, err = LastRun(t.Context(), s.store, "idle")
	require.ErrorContains(t, err, "no run of job idle has begun yet")
}

func TestOverview(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	s.job(state.Spec{Name: "slow"}, state.JobStatus{Live: []string{"20240603T110000Z", "20240603T113000Z"}, Queue: []string{"20240603T114000Z"}, NextRunAt: hours(2)})
	s.run("slow", hours(-1), state.Run{Status: state.Running, Attempt: 1, StartedAt: hours(-1)})
	s.run("slow", hours(-0.5), state.Run{}) // has ended since
	s.job(state.Spec{Name: "fails"}, state.JobStatus{ConsecutiveFailures: 4, FailedTotal: 4, LastError: "oh no", NextRunAt: hours(1)})
	s.job(state.Spec{Name: "failed"}, state.JobStatus{ConsecutiveFailures: 1, FailedTotal: 1, SucceededTotal: 5})
	s.job(state.Spec{Name: "paused"}, state.JobStatus{NextRunAt: hours(1)})
	s.put(s.keys.Control("paused"), state.Control{Paused: true})
	s.job(state.Spec{Name: "gone", Retired: true}, state.JobStatus{})
	s.put(s.keys.Spec("broken"), 1)
	s.put(s.keys.Status("broken"), state.JobStatus{})

	defs, err := s.store.Jobs(t.Context())
	require.NoError(t, err)
	o := Overlook(defs, 1, noon)
	require.Equal(t, []int{5, 1, 1, 2, 1, 2}, []int{o.Jobs, o.Paused, o.Invalid, o.Running, o.Pending, o.Failing})
	require.Equal(t, []int64{10, 5}, []int64{o.EndedTotal, o.FailedRuns})
	require.Equal(t, "fails", o.NextJobs[0].Job)
	require.Equal(t, "fails", o.FailingJobs[0].Job)
	require.Len(t, o.RunningRuns, 1)

	o = Overlook(defs, 10, noon)
	require.NoError(t, o.LookInto(t.Context(), s.store))
	require.Equal(t, 1, o.Running)
	require.Len(t, o.RunningRuns, 1)
	require.Equal(t, hours(-1), o.RunningRuns[0].StartedAt)
}

func TestInstances(t *testing.T) {
	t.Parallel()
	s := onShelf(t)
	s.put(s.keys.Instance("a-1-x"), state.Instance{ID: "a-1-x", Host: "a"})
	s.put(s.keys.Instance("b-2-y"), state.Instance{ID: "b-2-y", Host: "b"})
	all, err := Instances(t.Context(), s.client, s.store)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false}, []bool{all[0].Leads, all[1].Leads})
	s.put(s.keys.Candidates()+"1", state.Instance{ID: "b-2-y"})
	all, err = Instances(t.Context(), s.client, s.store)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, []bool{all[0].Leads, all[1].Leads})
}
