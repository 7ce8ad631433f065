package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

// Each history is wrong in one way, and the first violation says in which.
func TestAHistoryThatIsWrong(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return epoch.Add(time.Duration(n) * 10 * time.Second) }
	for name, test := range map[string]struct {
		spoil func(w *world)
		rule  string
		says  string
	}{
		"two attempts of a run at once": {func(w *world) {
			late := *w.start(at(1), 1)
			late.Kind, late.Mono = Beat, w.start(at(1), 2).Mono+2*ms
			w.Events = append(w.Events, late)
		}, "I1", "attempt 2 on i2 began while attempt 1 of 20261130T090010Z went on"},
		"two runs of a job at once": {func(w *world) {
			late := *w.start(at(1), 2)
			late.Kind, late.Mono = Beat, w.start(at(3), 1).Mono+2*ms
			w.Events = append(w.Events, late)
		}, "I2", "attempt 1 on i2 began while attempt 2 of 20261130T090010Z went on"},
		"told to stop, and within its grace when the next began": {func(w *world) {
			next := w.start(at(1), 2)
			told := *w.start(at(1), 1)
			told.Kind, told.Mono = Told, next.Mono-2*ms
			late := told
			late.Kind, late.Mono = Beat, next.Mono+2*ms
			w.Events = append(w.Events, told, late)
		}, "I1", "began while"},
		"an attempt that is claimed twice": {func(w *world) {
			twin := *w.start(at(7), 1)
			twin.Instance, twin.Token, twin.Mono = "i3", w.rev(), twin.Mono+100*ms
			w.Events = append(w.Events, twin)
		}, "I1", "attempt 1 began a second time"},
		"a token that does not rise with the attempt": {func(w *world) {
			low := w.start(at(1), 1).Token - 1
			for i := range w.Events {
				if e := &w.Events[i]; e.Run == state.RunID(at(1)) && e.Attempt == 2 {
					e.Token = low
				}
			}
			w.Records["a"][0].FencingToken = low
		}, "I1", "tokens must rise"},
		"a token that does not rise with the run": {func(w *world) {
			for i := range w.Events {
				if e := &w.Events[i]; e.Run == state.RunID(at(7)) {
					e.Token = 50
				}
			}
			w.Records["a"][4].FencingToken, w.Records["a"][4].Term = 50, 7
		}, "I1", "tokens must rise"},
		"a claim in a term that was over": {func(w *world) {
			w.Records["a"][4].Term = 7
		}, "I1", "in term 7, which was over"},
		"a verdict in a term that was over": {func(w *world) {
			w.Records["a"][3].Term = 7
		}, "I1", "in term 7, which was over"},
		"a token in the record that nobody had": {func(w *world) {
			w.Records["a"][4].FencingToken++
		}, "I1", "and the record says"},
		"a stale token that the target took": {func(w *world) {
			late := *w.start(at(1), 1)
			late.Kind, late.Accepted, late.Mono = Write, true, w.start(at(7), 1).Mono+2*ms
			w.Events = append(w.Events, late)
			w.Faults = append(w.Faults, Fault{Kind: Freeze, Instance: "i1", From: 11 * 1000 * ms, To: late.Mono})
		}, "I2", "the target took a write of attempt 1"},
		"the newest token that the target refused": {func(w *world) {
			w.find("write", func(e *Event) bool { return e.Kind == Write && e.Attempt == 2 }).Accepted = false
		}, "I2", "the target refused a write of attempt 2"},
		"a lost time": {func(w *world) {
			w.Records["a"] = slices.Delete(w.Records["a"], 1, 2)
			w.done("a", 7)
		}, "I3", "scheduled times have no record: from 09:00:20 to 09:00:20"},
		"a lost time at the beginning": {func(w *world) {
			w.Jobs[0].From = epoch.Add(-10 * time.Second)
		}, "I3", "from 09:00:00 to 09:00:00"},
		"a lost time at the end": {func(w *world) {
			w.done("a", 9)
		}, "I3", "from 09:01:20 to 09:01:30"},
		"a time that has two records": {func(w *world) {
			w.Records["a"][3].Count, w.Records["a"][3].Until = 4, at(7)
			w.done("a", 7)
		}, "I3", "scheduled times from 09:01:10 to 09:01:10 have a second record"},
		"a record that counts one time too many": {func(w *world) {
			w.Records["a"][3].Count++
			w.done("a", 7)
		}, "I3", "it stands for 4 times"},
		"a record that is there twice": {func(w *world) {
			w.Records["a"] = append(w.Records["a"], w.Records["a"][4])
			w.done("a", 7)
		}, "I3", "second record"},
		"a time after the last": {func(w *world) {
			w.not("a", at(8), state.Skipped, 1)
			w.done("a", 7)
		}, "I3", "is after the last scheduled time"},
		"more runs than there may be": {func(w *world) {
			w.Jobs[0].MaxRuns = 2
		}, "I3", "its schedule has yielded 3 runs, and may yield 2"},
		"succeeded, and no end in the history": {func(w *world) {
			w.Events = slices.DeleteFunc(w.Events, func(e Event) bool { return e.Kind == End && e.Run == state.RunID(at(3)) && e.Attempt == 2 })
		}, "I3", "the record says that attempt 2 has succeeded"},
		"succeeded, and never begun": {func(w *world) {
			w.Events = slices.DeleteFunc(w.Events, func(e Event) bool { return e.Run == state.RunID(at(3)) })
		}, "I3", "the record says that attempt 2 has succeeded"},
		"failed, and done": {func(w *world) {
			w.find("end", func(e *Event) bool { return e.Kind == End && e.Run == state.RunID(at(7)) }).Outcome = OK
		}, "I3", "it says itself that it was done"},
		"begun, and skipped": {func(w *world) {
			w.Events = append(w.Events, Event{Kind: Start, Job: "a", Run: state.RunID(at(2)), Attempt: 1, Token: w.start(at(3), 1).Token - 1, Instance: "i2", Mono: 20001 * ms, Wall: at(2)})
		}, "I3", "the record says skipped"},
		"begun, and no record": {func(w *world) {
			w.Events = append(w.Events, Event{Kind: Start, Job: "a", Run: "x-m1234", Attempt: 1, Token: w.rev(), Instance: "i2", Mono: 90001 * ms, Wall: at(9)})
		}, "I3", "the run has no record"},
		"more attempts than the record knows": {func(w *world) {
			w.Events = append(w.Events, Event{Kind: Start, Job: "a", Run: state.RunID(at(7)), Attempt: 2, Token: w.rev(), Instance: "i2", Mono: 90001 * ms, Wall: at(9)})
		}, "I3", "and the record knows of 1"},
		"too early": {func(w *world) {
			w.start(at(7), 1).Wall = at(7).Add(-time.Second)
		}, "I3", "began 1s before its scheduled time"},
		"asked for, and forgotten": {func(w *world) {
			w.Asked = append(w.Asked, Ask{Job: "a", Run: "20261130T090011Z-m1234"})
		}, "I3", "it was asked for, and has no record"},
		"a job that nobody knows": {func(w *world) {
			w.Events = append(w.Events, Event{Kind: Start, Job: "b", Run: "x", Attempt: 1, Mono: ms})
		}, "I3", "there is no such job"},
		"an attempt without a beginning": {func(w *world) {
			w.Events = slices.DeleteFunc(w.Events, func(e Event) bool { return e.Kind == Start && e.Run == state.RunID(at(7)) })
		}, "I3", "goes on and has not begun"},
		"left running": {func(w *world) {
			w.Records["a"][4].Status = state.Running
			w.done("a", 7)
		}, "I4", "its status says that runs are live"},
		"left running, by the record alone": {func(w *world) {
			w.Records["a"][4].Status = state.Running
		}, "I4", "its record says that it is running"},
		"left waiting": {func(w *world) {
			w.Records["a"][1].Status = state.Pending
			w.done("a", 7)
		}, "I4", "wait: [20261130T090020Z]"},
		"a lock that is left": {func(w *world) {
			w.Leftovers = append(w.Leftovers, "/etcdcron/default/locks/a")
		}, "I4", "locks/a is left behind"},
		"an old checkpoint": {func(w *world) {
			w.start(at(1), 2).Value = 1
		}, "I5", "attempt 2 goes on from checkpoint 1, and 2 had been acknowledged"},
		"a forgotten checkpoint": {func(w *world) {
			w.start(at(1), 2).Value = 0
		}, "I5", "attempt 2 goes on from checkpoint 0"},
		"a checkpoint from nowhere": {func(w *world) {
			w.start(at(1), 2).Value = 9
		}, "I5", "nobody had got beyond 3"},
		"another run's checkpoint": {func(w *world) {
			w.start(at(3), 1).Value = 4
		}, "I5", "nobody had got beyond 0"},
		"a stale checkpoint that was kept": {func(w *world) {
			late := *w.start(at(1), 1)
			late.Kind, late.Value, late.Called, late.Mono = Saved, 3, w.start(at(1), 2).Mono+ms, w.start(at(1), 2).Mono+3*ms
			w.Events = append(w.Events, late)
			w.Faults = append(w.Faults, Fault{Kind: Freeze, Instance: "i1", From: 11 * 1000 * ms, To: late.Mono})
		}, "I5", "though attempt 2 of 20261130T090010Z had begun"},
		"a job's checkpoint that was not carried on": {func(w *world) {
			w.Jobs[0].PerJob = true
			w.find("told", func(e *Event) bool { return e.Kind == Told }).Kind = Asking
			asking := w.find("asking", func(e *Event) bool { return e.Kind == Asking && e.Run == state.RunID(at(3)) })
			asking.Value = 5
			saved := *asking
			saved.Kind, saved.Called = Saved, asking.Mono
			w.Events = append(w.Events, saved)
		}, "I5", "attempt 2 goes on from checkpoint 0, and 5 had been acknowledged"},
		"a counter that is off by one": {func(w *world) {
			st := w.Statuses["a"]
			st.MissedTotal++
			w.Statuses["a"] = st
		}, "I6", "MissedTotal: 4; by the records 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sample()
			test.spoil(w)
			found := Check(w.Input)
			require.NotEmpty(t, found)
			i := slices.IndexFunc(found, func(v Violation) bool { return v.Rule == test.rule && strings.Contains(v.Text, test.says) })
			require.GreaterOrEqual(t, i, 0, "%v", found)
			if found[i].Mono != 0 {
				require.NotEmpty(t, found[i].Around)
			}
		})
	}
}

// What excuses an overlap, and what does not.
func TestExcuses(t *testing.T) {
	t.Parallel()
	// Attempt 1 on i1 goes on for 3 s after attempt 2 has begun, 14 s after epoch.
	overlap := func(faults ...Fault) []Violation {
		w := newWorld(Job{Name: "a", Every: 10 * time.Second})
		at := epoch.Add(10 * time.Second)
		one := w.begin("a", at, 1, "i1", 0)
		w.at(14 * time.Second)
		two := w.begin("a", at, 2, "i2", 0)
		w.at(17 * time.Second)
		one.say(Event{Kind: Beat})
		two.end(OK)
		two.record(at, state.Succeeded, "", 0, 1)
		w.done("a", 1)
		w.Faults = faults
		return Check(w.Input)
	}
	const second = int64(time.Second)
	for name, test := range map[string]struct {
		excused bool
		faults  []Fault
	}{
		"nothing":                             {false, nil},
		"frozen":                              {true, []Fault{{Kind: Freeze, Instance: "i1", From: 11 * second, To: 16 * second}}},
		"the other one was frozen":            {false, []Fault{{Kind: Freeze, Instance: "i2", From: 11 * second, To: 16 * second}}},
		"frozen for no time":                  {false, []Fault{{Kind: Freeze, Instance: "i1", From: 11 * second, To: 11*second + 100*ms}}},
		"frozen long before":                  {false, []Fault{{Kind: Freeze, Instance: "i1", From: second, To: 5 * second}}},
		"starved":                             {true, []Fault{{Kind: string(Stall), Instance: "i1", From: 13 * second, To: 14 * second}}},
		"everything starved":                  {true, []Fault{{Kind: string(Stall), From: 13 * second, To: 14 * second}}},
		"its lock was deleted":                {true, []Fault{{Kind: Unlock, Job: "a", From: 12 * second, To: 12 * second}}},
		"another lock was deleted":            {false, []Fault{{Kind: Unlock, Job: "b", From: 12 * second, To: 12 * second}}},
		"its lease was revoked":               {false, []Fault{{Kind: Revoke, From: 12 * second, To: 12 * second}}},
		"its lease was revoked, and it slept": {true, []Fault{{Kind: Revoke, From: 12 * second, To: 12 * second}, {Kind: "silence", From: 11 * second, To: 15 * second}}},
		"cut off":                             {false, []Fault{{Kind: "cut", Instance: "i1", From: 11 * second, To: 16 * second}}},
		"told, and stubborn":                  {true, nil},
	} {
		found := overlap(test.faults...)
		if name == "told, and stubborn" {
			w := newWorld(Job{Name: "a", Every: 10 * time.Second})
			at := epoch.Add(10 * time.Second)
			one := w.begin("a", at, 1, "i1", 0)
			one.say(Event{Kind: Told})
			w.at(14 * time.Second)
			two := w.begin("a", at, 2, "i2", 0)
			one.say(Event{Kind: Beat})
			two.end(OK)
			two.record(at, state.Succeeded, "", 0, 1)
			w.done("a", 1)
			found = Check(w.Input)
		}
		require.Equal(t, test.excused, len(found) == 0, "%s: %v", name, found)
	}
}

// Runs of a job that allows it may overlap, attempts of one run may not.
func TestAllow(t *testing.T) {
	t.Parallel()
	history := func(early time.Duration) []Violation {
		w := newWorld(Job{Name: "a", Shared: true})
		one := w.begin("a", epoch.Add(time.Second), 1, "i1", 0)
		two := w.begin("a", epoch.Add(2*time.Second), 1, "i1", 0)
		two.write()
		two.end(OK)
		two.record(epoch.Add(2*time.Second), state.Succeeded, "", 0, 0)
		w.at(5 * time.Second)
		again := w.begin("a", epoch.Add(time.Second), 2, "i2", 0)
		w.at(7*time.Second + early)
		one.say(Event{Kind: Beat})
		if early < 0 {
			w.Events[len(w.Events)-1].Mono = int64(4 * time.Second)
		}
		again.write()
		again.end(OK)
		again.record(epoch.Add(time.Second), state.Succeeded, "", 0, 1)
		w.done("a", 2)
		return Check(w.Input)
	}
	require.Empty(t, history(-time.Second))
	require.NotEmpty(t, history(0))
}
