package inspect

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/etcdcron/etcdcron/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2024, 6, 3, 12, 0, 0, 0, time.UTC)

func billing() state.Definition {
	return state.Definition{
		SpecRev: 1,
		Spec: state.Spec{
			Name: "daily_billing", Schedule: "0 9 * * *", TimeZone: "Asia/Shanghai", Source: "jobs.yaml",
			Description: "charges every account", Target: "/opt/billing/run --all\n  echo done",
			Overlap: "skip", CatchUp: "latest", Window: state.Duration(6 * time.Hour), Recovery: "resume", Recoveries: 3,
			Timeout: state.Duration(25 * time.Minute), LockTTL: state.Duration(30 * time.Second), Grace: state.Duration(7500 * time.Millisecond),
			Labels: map[string]string{"team": "billing", "env": "prod"},
		},
		View: state.View{Status: state.JobStatus{
			LastStatus: state.Failed, LastStartedAt: noon.Add(-11 * time.Hour), LastFinishedAt: noon.Add(-11 * time.Hour).Add(90 * time.Second),
			LastDurationMS: 90000, LastError: "exit status 1", NextRunAt: noon.Add(13 * time.Hour),
			SucceededTotal: 199, FailedTotal: 1, SkippedTotal: 3, SkippedByReason: map[string]int64{state.ReasonOverlap: 3},
			MissedTotal: 2, MissedByReason: map[string]int64{state.ReasonSuperseded: 2},
		}},
	}
}

func minutely(name string) state.Definition {
	return state.Definition{SpecRev: 1, Spec: state.Spec{Name: name, Schedule: "* * * * *", TimeZone: "UTC"}}
}

func jobsToShow() []state.Definition {
	fresh := minutely("新しい")
	stale := minutely("stale")
	stale.View.Status = state.JobStatus{Running: 1, LastStartedAt: noon.Add(-3 * time.Second), NextRunAt: noon.Add(-time.Hour)}
	paused := minutely("paused")
	paused.Control.Paused = true
	paused.View.Status = state.JobStatus{
		LastStatus: state.Succeeded, LastFinishedAt: noon.Add(-2 * time.Minute), SucceededTotal: 4, NextRunAt: noon.Add(time.Hour),
	}
	broken := state.Definition{SpecRev: 1, Spec: state.Spec{Name: "broken"}, Broken: errors.New("spec: not JSON")}
	retired := minutely("retired")
	retired.Spec.Retired = true
	return []state.Definition{billing(), fresh, stale, paused, broken, retired}
}

// The JSON is a contract: every field is there, null when not known.
func TestJob_JSON(t *testing.T) {
	t.Parallel()
	for i, want := range []string{
		`{"name":"daily_billing","schedule":"0 9 * * *","time_zone":"Asia/Shanghai","paused":false,"running":0,"pending":0,
		  "next_run_at":"2024-06-04T01:00:00Z","last_status":"failed","last_started_at":"2024-06-03T01:00:00Z",
		  "last_finished_at":"2024-06-03T01:01:30Z","last_duration_ms":90000,"last_error":"exit status 1",
		  "skipped_total":3,"missed_total":2,"succeeded_total":199,"failed_total":1,"success_rate":0.995,"alerting":[],
		  "description":"charges every account","target":"/opt/billing/run --all\n  echo done","source":"jobs.yaml","retired":false,"invalid":null}`,
		`{"name":"新しい","schedule":"* * * * *","time_zone":"UTC","paused":false,"running":0,"pending":0,
		  "next_run_at":"2024-06-03T12:01:00Z","last_status":null,"last_started_at":null,
		  "last_finished_at":null,"last_duration_ms":null,"last_error":null,
		  "skipped_total":0,"missed_total":0,"succeeded_total":0,"failed_total":0,"success_rate":null,"alerting":[],
		  "description":"","target":"","source":"","retired":false,"invalid":null}`,
	} {
		b, err := json.Marshal(Summarize(jobsToShow()[i], noon))
		require.NoError(t, err)
		require.JSONEq(t, want, string(b))
	}
	paused, broken := Summarize(jobsToShow()[3], noon), Summarize(jobsToShow()[4], noon)
	require.Nil(t, paused.NextRunAt)
	require.Nil(t, broken.NextRunAt)
	require.Equal(t, "spec: not JSON", *broken.Invalid)
	gone := Summarize(state.Definition{Spec: state.Spec{Name: "gone"}}, noon)
	require.Equal(t, "its definition is not there", *gone.Invalid)
	odd := minutely("odd")
	odd.Spec.Schedule = "often"
	require.NotNil(t, Summarize(odd, noon).Invalid)
}

// A job is not due any more when it has had its runs, or its last scheduled time has passed.
func TestOutlook(t *testing.T) {
	t.Parallel()
	def := minutely("a")
	def.Spec.MaxRuns, def.View.Status.ScheduledRunsTotal = 10, 8
	def.Spec.Delay = state.Duration(7 * time.Second)
	o, err := OutlookOf(def)
	require.NoError(t, err)
	require.Equal(t, []time.Time{noon.Add(7 * time.Second), noon.Add(67 * time.Second)}, o.Times(noon, 5))
	def.View.Status.ScheduledRunsTotal = 11
	require.Nil(t, Summarize(def, noon).NextRunAt)
	def.Spec.MaxRuns, def.Spec.End = 0, noon
	require.Nil(t, Summarize(def, noon.Add(time.Minute)).NextRunAt)
}
