package checker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

// draw makes up a history that is right.
func draw(t *rapid.T) *world {
	w := newWorld(Job{Name: "a"}, Job{Name: "b", Every: 3 * time.Second}, Job{Name: "c", Every: 2 * time.Second, PerJob: true})
	for _, j := range slices.Clone(w.Jobs) {
		carried := int64(0)
		w.mono = 0
		n := int64(rapid.IntRange(3, 12).Draw(t, "times"))
		ran := false
		for i := int64(1); i <= n; i++ {
			at := epoch.Add(time.Duration(i) * j.Every)
			kinds := []string{"run", "skip", "miss"}
			if i == n && !ran {
				kinds = kinds[:1]
			}
			switch rapid.SampledFrom(kinds).Draw(t, "verdict") {
			case "skip":
				w.not(j.Name, at, state.Skipped, 1)
			case "miss":
				count := int64(rapid.IntRange(1, int(n-i+1)).Draw(t, "count"))
				if i+count > n && !ran {
					count = 1
				}
				w.not(j.Name, at, state.Missed, count)
				i += count - 1
				if i == n && !ran {
					n++
				}
			case "run":
				carried = drawRun(t, w, &j, at, carried)
				ran = true
			}
			if rapid.IntRange(0, 4).Draw(t, "new leader") == 0 {
				w.term = w.rev()
			}
		}
		w.done(j.Name, n)
	}
	return w
}

// drawRun makes up a run, and returns what is carried on to the next.
func drawRun(t *rapid.T, w *world, j *Job, at time.Time, carried int64) int64 {
	value := int64(0)
	if j.PerJob {
		value = carried
	}
	var retries, recoveries int
	for n := 1; ; n++ {
		a := w.begin(j.Name, at, n, fmt.Sprint("i", rapid.IntRange(1, 3).Draw(t, "instance")), value)
		for range rapid.IntRange(0, 3).Draw(t, "work") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				a.say(Event{Kind: Beat})
			case 1:
				value++
				a.save(value)
			case 2:
				a.write()
			}
		}
		fate := rapid.SampledFrom([]string{"ok", "failed", "retried", "lost"}).Draw(t, "fate")
		if n == 4 {
			fate = "ok"
		}
		switch fate {
		case "ok":
			a.end(OK)
			a.record(at, state.Succeeded, "", retries, recoveries)
			return 0
		case "failed":
			a.end(Failed)
			a.record(at, state.Failed, "", retries, recoveries)
			return value
		case "retried":
			a.end(Failed)
			retries++
		case "lost":
			recoveries++
			w.term = w.rev()
		}
	}
}

func TestARandomHistoryThatIsRightPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		found := Check(w.Input)
		require.Empty(t, found)
	})
}

// Whatever is changed in a history that is right is noticed.
func TestARandomFaultIsCaught(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		job := w.Jobs[rapid.IntRange(0, len(w.Jobs)-1).Draw(t, "job")].Name
		var starts []int
		for i, e := range w.Events {
			if e.Kind == Start && e.Job == job {
				starts = append(starts, i)
			}
		}
		start := &w.Events[rapid.SampledFrom(starts).Draw(t, "start")]
		record := rapid.IntRange(0, len(w.Records[job])-1).Draw(t, "record")
		what := rapid.SampledFrom([]string{"lose", "twice", "claim", "count", "overlap", "old", "new", "token", "running", "forget"}).Draw(t, "what")
		switch what {
		case "lose":
			w.Records[job] = slices.Delete(w.Records[job], record, record+1)
			to := w.Jobs
			for i := range to {
				if to[i].Name == job {
					end := to[i].To
					w.done(job, 0)
					to[i].To = end
				}
			}
		case "twice":
			w.Records[job] = append(w.Records[job], w.Records[job][record])
		case "claim":
			twin := *start
			twin.Instance, twin.Token = "i9", w.rev()
			w.Events = append(w.Events, twin)
		case "count":
			st := w.Statuses[job]
			st.SkippedTotal++
			w.Statuses[job] = st
		case "overlap":
			if start.Mono == w.Events[starts[0]].Mono {
				t.Skip("nothing was before it")
			}
			before := w.Events[starts[0]]
			before.Kind, before.Mono = Beat, start.Mono+1
			w.Events = append(w.Events, before)
		case "old":
			if start.Value == 0 {
				t.Skip("it begins at the beginning")
			}
			start.Value--
		case "new":
			start.Value++
		case "token":
			start.Token = 1
			if start.Mono == w.Events[starts[0]].Mono {
				t.Skip("it is the first")
			}
		case "running":
			w.Records[job][record].Status = state.Running
		case "forget":
			run := start.Run
			w.Events = slices.DeleteFunc(w.Events, func(e Event) bool { return e.Job == job && e.Run == run && e.Kind == End })
			if !slices.ContainsFunc(w.Records[job], func(r Record) bool { return r.ID == run && r.Status == state.Succeeded }) {
				t.Skip("it has not succeeded")
			}
		}
		require.NotEmpty(t, Check(w.Input), what)
	})
}
