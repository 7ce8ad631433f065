package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var allAlerts = &AlertSpec{AfterFailures: 2, Missed: true, Overrun: Duration(time.Minute), Recovered: true, Notify: "test"}

func with(change func(*AlertSpec)) *AlertSpec {
	rules := *allAlerts
	change(&rules)
	return &rules
}

// life makes a job live through steps, and is what is left in its status: S, F and C are runs that succeed, fail and
// are canceled, M is a time that is missed, O a run that goes on for too long and is followed by its end, T tells what
// is owed and writes it into words.
func life(rules *AlertSpec, steps string) (st JobStatus, words []string) {
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	long := ""
	for _, step := range steps {
		if step == 'T' {
			in, kind, ok := st.Owed(rules)
			if ok {
				words = append(words, string(kind)+" "+in.Run)
				st = st.told(rules, &in, kind)
			}
			continue
		}
		at = at.Add(time.Minute)
		r := Run{ID: RunID(at)[9:13], Trigger: BySchedule, ScheduledAt: at, FinishedAt: at.Add(time.Second), Error: "no money"}
		switch step {
		case 'M':
			r.Status = Missed
			st = st.NotRun(&r).alerted(rules, &r)
			continue
		case 'O':
			st = st.Started(&r)
			st = st.overrunning(rules, r.ID, at)
			long = r.ID
			continue
		}
		r.Status = map[rune]RunStatus{'S': Succeeded, 'F': Failed, 'C': Canceled}[step]
		if long != "" {
			r.ID, long = long, ""
		} else {
			st = st.Started(&r)
		}
		st = st.Finished(&r).alerted(rules, &r)
	}
	return st, words
}

func TestIncidents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rules *AlertSpec
		steps string
		left  []string
		words []string
	}{
		"none that nobody asks for": {rules: nil, steps: "FFFFMOS"},
		"fewer failures":            {rules: allAlerts, steps: "FSFT"},
		"as many failures":          {rules: allAlerts, steps: "FF", left: []string{"failing 0102 2 untold"}},
		"told once":                 {rules: allAlerts, steps: "FFTFFT", left: []string{"failing 0102 4"}, words: []string{"failing 0102"}},
		"a cancel says nothing":     {rules: allAlerts, steps: "FCFTC", left: []string{"failing 0103 2"}, words: []string{"failing 0103"}},
		"recovered":                 {rules: allAlerts, steps: "FFTFSTT", words: []string{"failing 0102", "recovered 0102"}},
		"over before it was told":   {rules: allAlerts, steps: "FFSTTT", words: []string{"failing 0102", "recovered 0102"}},
		"flaps before it was told":  {rules: allAlerts, steps: "FFSFFSFFTT", left: []string{"failing 0102 2"}, words: []string{"failing 0102"}},
		"flaps after it was told": {
			rules: allAlerts, steps: "FFTSFFTTTST", words: []string{"failing 0102", "recovered 0102", "failing 0105", "recovered 0105"},
		},
		"no end is told": {
			rules: with(func(a *AlertSpec) { a.Recovered = false }), steps: "FFTSTFFST", words: []string{"failing 0102", "failing 0105"},
		},
		"nobody to tell":       {rules: with(func(a *AlertSpec) { a.Notify = "" }), steps: "FFTM", left: []string{"failing 0102 2", "missed 0103 1"}},
		"nobody to tell, over": {rules: with(func(a *AlertSpec) { a.Notify = "" }), steps: "FFMST"},
		"missed":               {rules: allAlerts, steps: "MTMT", left: []string{"missed 0101 2"}, words: []string{"missed 0101"}},
		"missed, and runs again": {
			rules: allAlerts, steps: "MTMFSTMST", words: []string{"missed 0101", "missed 0105"},
		},
		"missed is not asked for": {rules: with(func(a *AlertSpec) { a.Missed = false }), steps: "MT"},
		"too long":                {rules: allAlerts, steps: "OT", left: []string{"overrun 0101 0"}, words: []string{"overrun 0101"}},
		"too long, and over":      {rules: allAlerts, steps: "OTFTOCT", words: []string{"overrun 0101", "overrun 0103"}},
		"what fails goes on to be failing though a long one succeeds not": {
			rules: allAlerts, steps: "FFTOFT", left: []string{"failing 0102 3"}, words: []string{"failing 0102", "overrun 0103"},
		},
	} {
		st, words := life(tc.rules, tc.steps)
		var left []string
		for _, in := range st.Alerting {
			text := fmt.Sprintf("%s %s %d", in.Kind, in.Run, in.Count)
			if in.Untold {
				text += " untold"
			}
			left = append(left, text)
		}
		require.Equal(t, tc.left, left, name)
		require.Equal(t, tc.words, words, name)
	}
}

// A job whose alert is edited while incidents are open.
func TestIncidentsByOtherRules(t *testing.T) {
	t.Parallel()
	st, _ := life(allAlerts, "FFMO")
	require.Len(t, st.Alerting, 3)
	for name, tc := range map[string]struct {
		rules *AlertSpec
		left  []AlertKind
		told  bool
	}{
		"none any more":   {rules: nil},
		"others":          {rules: with(func(a *AlertSpec) { a.Missed = false }), left: []AlertKind{AlertFailing, AlertOverrun}},
		"a greater limit": {rules: with(func(a *AlertSpec) { a.AfterFailures = 9 }), left: []AlertKind{AlertFailing, AlertMissed, AlertOverrun}},
		"nobody to tell":  {rules: with(func(a *AlertSpec) { a.Notify = "" }), left: []AlertKind{AlertFailing, AlertMissed, AlertOverrun}, told: true},
	} {
		now := st.Alertable(tc.rules)
		var left []AlertKind
		for _, in := range now.Alerting {
			left = append(left, in.Kind)
			require.Equal(t, !tc.told, in.Untold, name)
		}
		require.Equal(t, tc.left, left, name)
		if len(left) < 3 || tc.told {
			_, kind, ok := st.Owed(tc.rules)
			require.True(t, ok, "they are to be taken away")
			require.Empty(t, kind)
			require.Equal(t, now, st.told(tc.rules, &Incident{}, ""))
		}
	}
	require.Len(t, st.Alerting, 3, "nothing has changed it")

	// An owner by a definition without an alert ends what it knows nothing of, and leaves the rest to the leader.
	st, _ = life(allAlerts, "FFT")
	r := Run{ID: "x", Status: Succeeded, FinishedAt: time.Unix(1, 0)}
	st = st.Finished(&r).alerted(nil, &r)
	in, kind, ok := st.Owed(allAlerts)
	require.True(t, ok)
	require.Equal(t, AlertRecovered, kind)
	require.Equal(t, "0102", in.Run)
	_, kind, ok = st.Owed(with(func(a *AlertSpec) { a.Recovered = false }))
	require.True(t, ok)
	require.Empty(t, kind)
}

func TestIncidentsAreBounded(t *testing.T) {
	t.Parallel()
	st := JobStatus{}
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	for i := range maxOverruns + 1 {
		r := Run{ID: fmt.Sprint(i), Status: Running, StartedAt: at}
		st = st.Started(&r)
		st = st.overrunning(allAlerts, r.ID, at)
		st = st.overrunning(allAlerts, r.ID, at) // once
	}
	require.Len(t, st.Alerting, maxOverruns)
	require.False(t, slices.ContainsFunc(st.Alerting, func(in Incident) bool { return in.Run == fmt.Sprint(maxOverruns) }))

	over := Run{ID: "0", Status: Succeeded, FinishedAt: at}
	st = st.Finished(&over).alerted(allAlerts, &over)
	require.Len(t, st.Alerting, maxOverruns, "it is owed a word")
	st = st.overrunning(allAlerts, fmt.Sprint(maxOverruns), at)
	require.Len(t, st.Alerting, maxOverruns)
	require.False(t, slices.ContainsFunc(st.Alerting, func(in Incident) bool { return in.Run == "0" }), "what is over makes room")

	st = st.overrunning(allAlerts, "0", at)
	require.False(t, slices.ContainsFunc(st.Alerting, func(in Incident) bool { return in.Run == "0" }), "it does not go on")
}

func TestIncidentsCostAJobWithoutAlertsNothing(t *testing.T) {
	t.Parallel()
	r := Run{ID: "a", Status: Failed, Error: "no"}
	st := JobStatus{}.Started(&r)
	st = st.Finished(&r).alerted(nil, &r)
	require.NotContains(t, string(st.encode()), "alert")
	require.NotContains(t, string(encode(Spec{Name: "a"})), "alert")
}

// Whatever happens to a job, and whenever it is told: what is open is what its records say, each incident is told
// once, in order, and nothing is kept that nobody is owed. A leader may die between telling and noting it down; then
// its successor tells the same again.
func TestIncidentsAreToldOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := &AlertSpec{
			AfterFailures: rapid.IntRange(1, 3).Draw(t, "after"), Missed: true, Overrun: 1,
			Recovered: rapid.Bool().Draw(t, "recovered"), Notify: "test",
		}
		st := JobStatus{}
		at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
		var live []string
		missed, overrun := false, map[string]bool{}
		told := map[string]int{} // kind and run: how often the word was noted down
		last := AlertRecovered   // of what was told about failing
		tell := func(at time.Time) bool {
			in, kind, ok := st.Owed(rules)
			if !ok {
				return false
			}
			word := string(kind) + " " + in.Run
			require.Zero(t, told[word], "%s was told", word)
			if rapid.IntRange(0, 3).Draw(t, "dies") == 0 {
				return true // the word was told, and is told again
			}
			told[word]++
			if in.Kind == AlertFailing && rules.Recovered {
				require.NotEqual(t, last, kind, "begin and end alternate")
				last = kind
			}
			was := in
			if rapid.Bool().Draw(t, "meanwhile") && len(live) > 0 { // a run ends between the two
				r := Run{ID: live[0], Status: Succeeded, FinishedAt: at}
				live, missed = live[1:], false
				delete(overrun, r.ID)
				st = st.Finished(&r).alerted(rules, &r)
			}
			st = st.told(rules, &was, kind)
			return true
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			at = at.Add(time.Minute)
			before := string(st.encode())
			copied := st
			r := Run{ID: RunID(at), Trigger: BySchedule, ScheduledAt: at, FinishedAt: at}
			switch what := rapid.SampledFrom([]string{"start", "end", "end", "miss", "overrun", "tell"}).Draw(t, "what"); {
			case what == "start":
				st = st.Started(&r)
				live = append(live, r.ID)
			case what == "miss":
				r.Status, missed = Missed, true
				st = st.NotRun(&r).alerted(rules, &r)
			case what == "tell":
				tell(at)
			case len(live) == 0:
			case what == "overrun":
				id := rapid.SampledFrom(live).Draw(t, "run")
				if open := len(overrun); open < maxOverruns {
					overrun[id] = true
				}
				st = st.overrunning(rules, id, at)
			case what == "end":
				r.ID, live = live[0], live[1:]
				r.Status = rapid.SampledFrom([]RunStatus{Succeeded, Failed, Failed, Canceled}).Draw(t, "how")
				missed = missed && r.Status != Succeeded
				delete(overrun, r.ID)
				st = st.Finished(&r).alerted(rules, &r)
			}
			require.Equal(t, before, string(copied.encode()), "a status is changed by none of its methods")
			require.Equal(t, st.ConsecutiveFailures >= int64(rules.AfterFailures), st.Alerts(AlertFailing))
			require.Equal(t, missed, st.Alerts(AlertMissed))
			require.Equal(t, len(overrun) > 0, st.Alerts(AlertOverrun))
			require.LessOrEqual(t, len(st.Alerting), 3+maxOverruns)
			open := map[AlertKind]int{}
			for _, in := range st.Alerting {
				if in.Open() {
					open[in.Kind]++
				}
			}
			require.LessOrEqual(t, open[AlertFailing], 1)
			require.LessOrEqual(t, open[AlertMissed], 1)
			require.Equal(t, len(overrun), open[AlertOverrun])
			var back JobStatus
			require.NoError(t, json.Unmarshal(st.encode(), &back))
			require.Equal(t, st.Alerting, back.Alerting, "as it reads back from etcd")
		}
		for range 200 {
			if !tell(at) {
				break
			}
		}
		for _, in := range st.Alerting {
			require.True(t, in.Open() && !in.Untold, "%+v is kept for nobody", in)
		}
	})
}
