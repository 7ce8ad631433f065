package cronrunner

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func mustCompile(t require.TestingT, j Job) *job {
	j.Name = orDefault(j.Name, "j")
	c, err := j.compile()
	require.NoError(t, err)
	return c
}

func (v verdict) String() string {
	s := fmt.Sprintf("%s %s", v.status, v.first.Format("15:04:05"))
	if v.count > 1 {
		s += fmt.Sprintf("..%s x%d", v.last.Format("15:04:05"), v.count)
	}
	s += " " + string(v.trigger) + " " + v.reason
	if v.merge {
		s += " merged"
	}
	return s
}

// busy and exhausted are of tables: there, zero is a job that is idle and may run for ever.
const busy, exhausted = -1, -1

func (s situation) orIdle() situation {
	s.room, s.left = max(orDefault(s.room, 1), 0), max(orDefault(s.left, unlimited), 0)
	return s
}

func TestDecide(t *testing.T) {
	minutely := Job{Schedule: "* * * * *"}
	none := Job{Schedule: "* * * * *", CatchUp: CatchUp{Policy: None}}
	window := Job{Schedule: "* * * * *", CatchUp: CatchUp{Window: 3 * time.Minute}}
	queue := Job{Schedule: "* * * * *", Overlap: Overlap{Policy: Queue, Limit: 2}}
	queueSecondly := Job{Schedule: "* * * * * *", Overlap: Overlap{Policy: Queue, Limit: 2}}
	coalesce := Job{Schedule: "* * * * *", Overlap: Overlap{Policy: Coalesce}}
	all := Job{Schedule: "* * * * *", CatchUp: CatchUp{Policy: All, Limit: 3}}
	allQueue := Job{Schedule: "* * * * *", Overlap: Overlap{Policy: Queue, Limit: 2}, CatchUp: CatchUp{Policy: All}}
	replace := Job{Schedule: "* * * * *", Overlap: Overlap{Policy: Replace}}
	allow := Job{Schedule: "* * * * * *", Overlap: Overlap{Policy: Allow, Limit: 2}}
	at := noon.Add
	for _, tc := range []struct {
		name string
		job  Job
		s    situation
		now  time.Time
		want []string
	}{
		{"nothing is due", minutely, situation{cursor: noon, since: at(-time.Hour)}, at(59 * time.Second), nil},
		{
			"due to the second", minutely,
			situation{cursor: noon, since: at(-time.Hour)},
			at(time.Minute),
			[]string{"running 12:01:00 schedule "},
		},
		{"decided already", minutely, situation{cursor: at(time.Minute), since: at(-time.Hour)}, at(time.Minute), nil},
		{"the clock was set back", minutely, situation{cursor: at(time.Hour), since: at(-time.Hour)}, at(time.Minute), nil},
		{
			"a little late is on schedule", minutely,
			situation{cursor: noon, since: at(-time.Hour)},
			at(90 * time.Second),
			[]string{"running 12:01:00 schedule "},
		},
		{
			"the job still runs", minutely,
			situation{cursor: noon, since: at(-time.Hour), room: busy},
			at(time.Minute),
			[]string{"skipped 12:01:00 schedule overlap"},
		},
		{"paused", minutely, situation{cursor: noon, since: at(-time.Hour), paused: true}, at(3 * time.Minute), nil},
		{
			"resumed: nothing is caught up", minutely,
			situation{cursor: noon, since: at(-time.Hour), resumed: at(3*time.Minute + time.Second)},
			at(3*time.Minute + 10*time.Second),
			[]string{"skipped 12:01:00..12:03:00 x3 catch_up paused"},
		},
		{
			"resumed before the next time", minutely,
			situation{cursor: noon, since: at(-time.Hour), resumed: at(2*time.Minute + time.Second)},
			at(3 * time.Minute),
			[]string{"skipped 12:01:00..12:02:00 x2 catch_up paused", "running 12:03:00 schedule "},
		},
		{
			"resumed by a clock that is ahead", minutely,
			situation{cursor: noon, since: at(-time.Hour), resumed: at(time.Hour)},
			at(time.Minute),
			[]string{"skipped 12:01:00 schedule paused"},
		},
		{"exhausted", minutely, situation{cursor: noon, since: at(-time.Hour), left: exhausted}, at(3 * time.Minute), nil},
		{
			"the last run",
			Job{Schedule: "* * * * * *", Overlap: Overlap{Policy: Queue}},
			situation{cursor: noon, since: at(-time.Hour), room: busy, left: 2},
			at(5 * time.Second),
			[]string{"pending 12:00:01 schedule ", "pending 12:00:02 schedule "},
		},
		{
			"all: one after the other, the oldest first", all,
			situation{cursor: noon, since: at(4*time.Minute + 30*time.Second)},
			at(4*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00 catch_up limit", "running 12:02:00 catch_up "},
		},
		{
			"all: the others wait until the job is idle, and what is due meanwhile is skipped", all,
			situation{cursor: at(2 * time.Minute), since: at(4*time.Minute + 30*time.Second), room: busy},
			at(5 * time.Minute),
			[]string{"pending 12:03:00 catch_up ", "pending 12:04:00 catch_up ", "skipped 12:05:00 schedule overlap"},
		},
		{
			"all: the window cuts",
			Job{Schedule: "* * * * *", CatchUp: CatchUp{Policy: All, Window: 2 * time.Minute}},
			situation{cursor: noon, since: at(4*time.Minute + 30*time.Second), room: busy},
			at(4*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00..12:02:00 x2 catch_up window", "pending 12:03:00 catch_up ", "pending 12:04:00 catch_up "},
		},
		{
			"all, queue: no more than the queue has room for, the newest", allQueue,
			situation{cursor: noon, since: at(4*time.Minute + 30*time.Second), room: busy, queue: 1},
			at(4*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00..12:03:00 x3 catch_up limit", "pending 12:04:00 catch_up "},
		},
		{
			"all: a day of seconds",
			Job{Schedule: "* * * * * *", CatchUp: CatchUp{Policy: All, Limit: 1}},
			situation{cursor: noon, since: at(24*time.Hour + time.Millisecond)},
			at(24*time.Hour + time.Millisecond),
			[]string{"missed 12:00:01..11:59:59 x86399 catch_up limit", "running 12:00:00 catch_up "},
		},
		{"replace: the job is idle", replace, situation{cursor: noon, since: at(-time.Hour)}, at(time.Minute), []string{"running 12:01:00 schedule "}},
		{
			"replace: the newest waits for the running one to stop", replace,
			situation{cursor: noon, since: at(-time.Hour), room: busy},
			at(2*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00 catch_up superseded", "pending 12:02:00 schedule "},
		},
		{
			"replace: and is replaced by a newer one", replace,
			situation{cursor: noon, since: at(-time.Hour), room: busy, queue: 1},
			at(time.Minute),
			[]string{"pending 12:01:00 schedule "},
		},
		{"allow: there is room", allow, situation{cursor: noon, since: at(-time.Hour), room: 1}, at(time.Second), []string{"running 12:00:01 schedule "}},
		{
			"allow: there is none", allow,
			situation{cursor: noon, since: at(-time.Hour), room: busy},
			at(2 * time.Second),
			[]string{"skipped 12:00:01..12:00:02 x2 schedule overlap"},
		},
		{
			"nobody led: the newest runs", minutely,
			situation{cursor: noon, since: at(5*time.Minute + 30*time.Second)},
			at(5*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00..12:04:00 x4 catch_up superseded", "running 12:05:00 catch_up "},
		},
		{
			"nobody led: one time", minutely,
			situation{cursor: noon, since: at(80 * time.Second)},
			at(80 * time.Second),
			[]string{"running 12:01:00 catch_up "},
		},
		{
			"nobody led, no catch-up", none,
			situation{cursor: noon, since: at(5*time.Minute + 30*time.Second)},
			at(5*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00..12:05:00 x5 catch_up catch_up"},
		},
		{
			"no catch-up, but due in this term", none,
			situation{cursor: noon, since: at(4*time.Minute + 30*time.Second)},
			at(5 * time.Minute),
			[]string{"missed 12:01:00..12:04:00 x4 catch_up catch_up", "running 12:05:00 schedule "},
		},
		{
			"the window cuts", window,
			situation{cursor: noon, since: at(10*time.Minute + time.Second)},
			at(10*time.Minute + time.Second),
			[]string{"missed 12:01:00..12:07:00 x7 catch_up window", "missed 12:08:00..12:09:00 x2 catch_up superseded", "running 12:10:00 catch_up "},
		},
		{
			"all outside the window",
			Job{Schedule: "0 * * * *", CatchUp: CatchUp{Window: time.Minute}},
			situation{cursor: noon, since: at(2*time.Hour + 30*time.Minute)},
			at(2*time.Hour + 30*time.Minute),
			[]string{"missed 13:00:00..14:00:00 x2 catch_up window"},
		},
		{
			"a day of seconds",
			Job{Schedule: "* * * * * *"},
			situation{cursor: noon, since: at(24 * time.Hour)},
			at(24 * time.Hour),
			[]string{"missed 12:00:01..11:59:59 x86399 catch_up superseded", "running 12:00:00 schedule "},
		},
		{
			"suspended for long in one term", minutely,
			situation{cursor: noon, since: at(-time.Hour)},
			at(10*time.Minute + 59*time.Second),
			[]string{"missed 12:01:00..12:09:00 x9 catch_up superseded", "running 12:10:00 schedule "},
		},
		{
			"busy after a gap", minutely,
			situation{cursor: noon, since: at(5*time.Minute + 30*time.Second), room: busy},
			at(5*time.Minute + 30*time.Second),
			[]string{"skipped 12:01:00..12:05:00 x5 catch_up overlap"},
		},
		{"queue: the job is idle", queue, situation{cursor: noon, since: at(-time.Hour)}, at(time.Minute), []string{"running 12:01:00 schedule "}},
		{"queue: the job still runs", queue, situation{cursor: noon, since: at(-time.Hour), room: busy}, at(time.Minute), []string{"pending 12:01:00 schedule "}},
		{"queue: order is kept", queue, situation{cursor: noon, since: at(-time.Hour), queue: 1}, at(time.Minute), []string{"pending 12:01:00 schedule "}},
		{"queue: it is full", queue, situation{cursor: noon, since: at(-time.Hour), room: busy, queue: 2}, at(time.Minute), []string{"skipped 12:01:00 schedule queue_full"}},
		{
			"queue: each that fell due in this term", queueSecondly,
			situation{cursor: noon, since: at(-time.Hour), room: busy},
			at(3 * time.Second),
			[]string{"pending 12:00:01 schedule ", "pending 12:00:02 schedule ", "skipped 12:00:03 schedule queue_full"},
		},
		{
			"queue: one by one when idle", queueSecondly,
			situation{cursor: noon, since: at(-time.Hour)},
			at(3 * time.Second),
			[]string{"running 12:00:01 schedule "},
		},
		{
			"queue: of those before, the newest", queue,
			situation{cursor: noon, since: at(5*time.Minute + 30*time.Second), room: busy},
			at(5*time.Minute + 30*time.Second),
			[]string{"missed 12:01:00..12:04:00 x4 catch_up superseded", "pending 12:05:00 catch_up "},
		},
		{"coalesce: the job is idle", coalesce, situation{cursor: noon, since: at(-time.Hour)}, at(time.Minute), []string{"running 12:01:00 schedule "}},
		{"coalesce: the job still runs", coalesce, situation{cursor: noon, since: at(-time.Hour), room: busy}, at(time.Minute), []string{"pending 12:01:00 schedule "}},
		{"coalesce: one waits already", coalesce, situation{cursor: noon, since: at(-time.Hour), room: busy, queue: 1}, at(time.Minute), []string{"pending 12:01:00 schedule  merged"}},
		{
			"coalesce: one run for a gap", coalesce,
			situation{cursor: noon, since: at(5*time.Minute + 30*time.Second)},
			at(5*time.Minute + 30*time.Second),
			[]string{"running 12:01:00..12:05:00 x5 catch_up "},
		},
		{
			"coalesce without catch-up",
			Job{Schedule: "* * * * *", Overlap: Overlap{Policy: Coalesce}, CatchUp: CatchUp{Policy: None}},
			situation{cursor: noon, since: at(4*time.Minute + 30*time.Second), room: busy},
			at(5 * time.Minute),
			[]string{"missed 12:01:00..12:04:00 x4 catch_up catch_up", "pending 12:05:00 schedule "},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, v := range decide(mustCompile(t, tc.job), tc.s.orIdle(), tc.now) {
				got = append(got, v.String())
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// Each scheduled time is decided exactly once, whenever and however often decide is asked, whatever the
// policies: the verdicts' ranges tile the time line without gap or overlap (invariant I3's pure half).
func TestDecideTilesTheTimeLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		overlap := Overlap{Policy: rapid.SampledFrom([]OverlapPolicy{Skip, Queue, Coalesce, Replace, Allow}).Draw(t, "overlap")}
		policies := []CatchUpPolicy{Latest, None, All}
		if overlap.Policy == Coalesce || overlap.Policy == Replace {
			policies = policies[:2] // they contradict the third
		}
		catchUp := CatchUp{
			Policy: rapid.SampledFrom(policies).Draw(t, "catch_up"),
			Window: time.Duration(rapid.IntRange(1, 600).Draw(t, "window")) * time.Second,
		}
		if overlap.eachRuns() {
			overlap.Limit = rapid.IntRange(1, 20).Draw(t, "limit")
		}
		if catchUp.Policy == All {
			catchUp.Limit = rapid.IntRange(1, 20).Draw(t, "catch_up limit")
		}
		j := mustCompile(t, Job{
			Schedule: rapid.SampledFrom([]string{"* * * * * *", "*/7 * * * * *", "* * * * *", "0 */5 * * * *"}).Draw(t, "schedule"),
			Overlap:  overlap, CatchUp: catchUp,
			MaxRuns: rapid.SampledFrom([]int64{0, 0, 1, 30}).Draw(t, "max_runs"),
		})
		start := noon
		s := situation{cursor: start, since: start}
		now := start
		var decided, ran int64
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(-30, 900).Draw(t, "step")) * time.Second)
			s.room = rapid.IntRange(0, j.Overlap.limit()).Draw(t, "room")
			s.paused = rapid.IntRange(0, 9).Draw(t, "paused") == 0
			if rapid.Bool().Draw(t, "new term") {
				s.since = now
			}
			if rapid.IntRange(0, 9).Draw(t, "resumed") == 0 {
				s.resumed = now.Add(-time.Duration(rapid.IntRange(-10, 60).Draw(t, "ago")) * time.Second)
			}
			s.queue = rapid.IntRange(0, max(j.Overlap.Limit, 1)).Draw(t, "queue")
			s.left = j.runsLeft(&state.JobStatus{ScheduledRunsTotal: ran})
			verdicts := decide(j, s, now)
			require.LessOrEqual(t, len(verdicts), enough+3)
			runs := int64(0)
			for i, v := range verdicts {
				require.Equal(t, j.schedule.Next(s.cursor), v.first, "no gap, no overlap")
				first, last, count := j.schedule.Between(s.cursor, v.last)
				require.Equal(t, v.first, first)
				require.Equal(t, v.last, last)
				require.Equal(t, v.count, count)
				require.False(t, v.last.After(now), "not before its time")
				if v.status == state.Running {
					require.Len(t, verdicts, i+1, "one runs, and what comes after it is decided later")
					require.True(t, s.room > 0 && s.queue == 0 && !s.paused)
				}
				if v.status == state.Running || v.status == state.Pending {
					runs++
					if j.Overlap.Policy != Coalesce {
						require.Equal(t, int64(1), v.count)
					}
					require.True(t, v.last.After(s.resumed), "nothing is run that fell due while it was paused")
				}
				decided += v.count
				s.cursor = v.last
			}
			ran += runs
			require.True(t, j.MaxRuns == 0 || ran <= j.MaxRuns)
			if j.Overlap.Policy != Queue && j.Overlap.Policy != Allow && j.CatchUp.Policy != All {
				require.LessOrEqual(t, runs, int64(1))
			}
			if runs < s.left && !s.paused && len(verdicts) < enough && (len(verdicts) == 0 || verdicts[len(verdicts)-1].status != state.Running) {
				require.True(t, j.schedule.Next(s.cursor).After(now), "all that is due is decided")
			}
		}
		_, _, all := j.schedule.Between(start, s.cursor)
		require.Equal(t, all, decided)
	})
}

func TestVerdictRecord(t *testing.T) {
	j := mustCompile(t, Job{Schedule: "* * * * *", Timeout: 5 * time.Minute})
	now := noon.Add(1500 * time.Millisecond)
	run := verdict{status: state.Running, trigger: state.BySchedule, first: noon, last: noon, count: 1}.record(j, "i", 7, now)
	require.Equal(t, state.Run{
		Job: "j", ID: "20261130T120000Z", Trigger: state.BySchedule, ScheduledAt: noon, Status: state.Running,
		Attempt: 1, StartedAt: now, LatenessMS: 1500, TimeoutMS: 300_000, Instance: "i", Term: 7,
	}, run)
	missed := verdict{status: state.Missed, trigger: state.ByCatchUp, reason: "window", first: noon, last: noon.Add(time.Hour), count: 61}.record(j, "i", 7, now)
	require.Equal(t, int64(61), missed.Count)
	require.Equal(t, noon.Add(time.Hour), missed.Until)
	require.Zero(t, missed.Attempt)
}

func TestVerdictOf(t *testing.T) {
	boom := fmt.Errorf("boom")
	for _, tc := range []struct {
		res    result
		status state.RunStatus
		reason string
		done   bool
	}{
		{result{}, state.Succeeded, "", true},
		{result{cause: ErrLockLost}, state.Succeeded, "", true},
		{result{cause: ErrTimeout}, state.Succeeded, "", true},
		{result{err: boom}, state.Failed, "", true},
		{result{err: boom, cause: ErrTimeout}, state.Failed, state.ReasonTimeout, true},
		{result{err: boom, cause: ErrDraining}, state.Canceled, state.ReasonDrain, true},
		{result{err: boom, cause: ErrLockLost}, "", "", false},
		{result{err: &panicError{text: "x"}}, state.Failed, state.ReasonPanic, true},
		{result{err: errUnreturned}, state.Failed, "", true},
	} {
		status, reason, done := verdictOf(tc.res)
		require.Equal(t, tc.status, status, "%+v", tc.res)
		require.Equal(t, tc.reason, reason, "%+v", tc.res)
		require.Equal(t, tc.done, done, "%+v", tc.res)
	}
}
