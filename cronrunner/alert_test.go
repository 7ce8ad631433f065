package cronrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// ear is told of incidents.
type ear struct {
	mu     sync.Mutex
	heard  []Notice
	answer func(ctx context.Context, call int, n Notice) error // calls count from 1; nil takes everything
}

func (e *ear) notify(ctx context.Context, n Notice) error {
	e.mu.Lock()
	e.heard = append(e.heard, n)
	call := len(e.heard)
	e.mu.Unlock()
	if e.answer == nil {
		return nil
	}
	return e.answer(ctx, call, n)
}

// keys are those of what was told, in order.
func (e *ear) keys() (keys []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.heard {
		keys = append(keys, n.Key)
	}
	return keys
}

func (e *ear) waitFor(t *testing.T, calls int) []Notice {
	t.Helper()
	require.Eventually(t, func() bool { return len(e.keys()) >= calls }, patience, 5*time.Millisecond)
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.heard)
}

func deaf(context.Context, int, Notice) error { return errors.New("nobody listens") }

// broke fails as long as it is set.
func broke(is *atomic.Bool) Handler {
	return func(context.Context, *Run) error {
		if is.Load() {
			return errors.New("no money")
		}
		return nil
	}
}

func alerting(name string, h Handler, a Alert) Job {
	j := secondly(name, h)
	j.Alert = a
	return j
}

func (b *bench) waitStatus(job string, ok func(st *state.JobStatus) bool) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		def, err := b.store.Job(b.t.Context(), job)
		return err == nil && ok(&def.View.Status)
	}, patience, 10*time.Millisecond)
}

func calm(st *state.JobStatus) bool { return len(st.Alerting) == 0 }

func (e *events) alerts() (kinds []state.AlertKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if a, ok := ev.(Alerted); ok {
			kinds = append(kinds, a.Incident.Kind)
		}
	}
	return kinds
}

func (e *events) failedDeliveries() (errs []error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if n, ok := ev.(Notified); ok && n.Err != nil {
			errs = append(errs, n.Err)
		}
	}
	return errs
}

func TestFailuresAreToldOnceAndTheirEndToo(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	e := &ear{answer: func(_ context.Context, call int, _ Notice) error {
		if call == 1 {
			return RetryAfter(errors.New("not now"), time.Millisecond)
		}
		return nil
	}}
	i := b.start(Config{}, alerting("bill", broke(is), Alert{AfterFailures: 2, Notify: e.notify}))
	runs := b.waitRuns("bill", reached(2, state.Failed))
	told := e.waitFor(t, 2)
	b.waitStatus("bill", func(st *state.JobStatus) bool { return len(st.Alerting) == 1 && !st.Alerting[0].Untold })
	b.waitRuns("bill", reached(4, state.Failed))
	require.Len(t, e.keys(), 2, "the second was taken")
	require.Equal(t, told[0].Key, told[1].Key)
	require.Equal(t, "default/bill/failing/"+runs[1].ID, told[0].Key)
	require.Equal(t, Notice{
		Key: told[0].Key, Job: "bill", Kind: state.AlertFailing, Run: runs[1].ID, Since: runs[1].FinishedAt, Count: told[0].Count,
		Error: "no money", Instance: i.ID(), Namespace: "default", Text: told[0].Text,
	}, told[0])
	require.GreaterOrEqual(t, told[0].Count, int64(2))
	require.Equal(t, "code", b.spec("bill").Alert.Notify)

	is.Store(false)
	told = e.waitFor(t, 3)
	require.Equal(t, "default/bill/recovered/"+runs[1].ID, told[2].Key)
	require.GreaterOrEqual(t, told[2].Count, int64(4))
	require.False(t, told[2].RecoveredAt.IsZero())
	b.waitStatus("bill", calm)
	i.stop()
	require.Len(t, e.keys(), 3)
	require.Equal(t, []state.AlertKind{state.AlertFailing}, i.events.alerts())
	b.requireEachTimeOnce("bill")
}

func (b *bench) spec(job string) state.Spec {
	b.t.Helper()
	def, err := b.store.Job(b.t.Context(), job)
	require.NoError(b.t, err)
	return def.Spec
}

func TestWhatADeadLeaderCouldNotTellItsSuccessorDoes(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	client, proxies := b.cluster.Proxied(t)
	first, second := &ear{answer: deaf}, &ear{}
	a := b.startOn(client, Config{InstanceID: "a"}, alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: first.notify}))
	key := first.waitFor(t, 1)[0].Key
	c := b.start(Config{InstanceID: "c"}, alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: second.notify}))
	for _, p := range proxies {
		p.Cut()
	}
	c.waitLeading()
	told := second.waitFor(t, 1)
	require.Equal(t, key, told[0].Key)
	require.Equal(t, c.ID(), told[0].Instance)
	b.waitStatus("bill", func(st *state.JobStatus) bool { return !st.Alerting[0].Untold })
	n := len(b.runs("bill"))
	b.waitRuns("bill", reached(n+2, state.Failed))
	for _, p := range proxies {
		p.Heal()
	}
	a.stop()
	c.stop()
	require.Equal(t, []string{key}, second.keys(), "once")
	require.Equal(t, []state.AlertKind{state.AlertFailing}, append(a.events.alerts(), c.events.alerts()...), "whoever wrote it down")
}

// A leader that dies between telling and noting it: the same is told again, and can be told from anything else.
func TestWhatWasNotNotedIsToldAgainUnderItsKey(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	client, proxies := b.cluster.Proxied(t)
	first, second := &ear{answer: func(context.Context, int, Notice) error {
		for _, p := range proxies {
			p.Cut()
		}
		return nil
	}}, &ear{}
	c := Config{InstanceID: "c"}
	b.startOn(client, Config{InstanceID: "a"}, alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: first.notify}))
	key := first.waitFor(t, 1)[0].Key
	b.start(c, alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: second.notify}))
	second.waitFor(t, 1)
	b.waitStatus("bill", func(st *state.JobStatus) bool { return !st.Alerting[0].Untold })
	for _, p := range proxies {
		p.Heal()
	}
	require.Equal(t, []string{key}, first.keys())
	require.Equal(t, []string{key}, second.keys())
}

func TestAnOverrunIsToldWhileItLasts(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	e := &ear{}
	j := alerting("slow", func(ctx context.Context, _ *Run) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, Alert{Overrun: time.Second, Notify: e.notify})
	j.MaxRuns = 1
	i := b.start(Config{}, j)
	told := e.waitFor(t, 1)[0]
	run := b.runs("slow")[0]
	require.Equal(t, state.Running, run.Status)
	require.Equal(t, state.AlertOverrun, told.Kind)
	require.Equal(t, run.ID, told.Run)
	require.Equal(t, run.StartedAt, told.Since)
	require.Contains(t, told.Text, "goes on for more than 1s")
	b.waitStatus("slow", func(st *state.JobStatus) bool { return len(st.Alerting) == 1 && !st.Alerting[0].Untold })
	close(release)
	b.waitRuns("slow", reached(1, state.Succeeded))
	b.waitStatus("slow", calm)
	i.stop()
	require.Len(t, e.keys(), 1)
	require.Equal(t, []state.AlertKind{state.AlertOverrun}, i.events.alerts())
}

// A run that goes on where nobody leads any more: its owner says that it does so for too long, and the leader, whom
// no event of its own tells of that, tells it.
func TestAnOverrunElsewhereIsTold(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	slow := func(ctx context.Context, _ *Run) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	first, second := &ear{answer: deaf}, &ear{}
	once := func(e *ear) Job { // nothing but the overrun is written
		j := alerting("slow", slow, Alert{Overrun: 4 * time.Second, Notify: e.notify})
		j.MaxRuns = 1
		return j
	}
	a := b.start(Config{InstanceID: "a"}, once(first))
	b.waitRuns("slow", reached(1, state.Running))
	c := b.start(Config{InstanceID: "c"}, once(second))
	b.handOver(a, c)
	told := second.waitFor(t, 1)[0]
	require.Equal(t, state.AlertOverrun, told.Kind)
	require.Equal(t, state.Running, b.runs("slow")[0].Status)
	close(release)
	a.stop()
	c.stop()
	require.Len(t, second.keys(), 1)
}

func TestMissedTimesAreTold(t *testing.T) {
	b := newBench(t)
	e := &ear{}
	j := alerting("tick", quick, Alert{Missed: true, Notify: e.notify})
	j.CatchUp.Policy = None
	i := b.start(Config{}, j)
	b.waitRuns("tick", reached(1, state.Succeeded))
	i.stop()
	b.passed(2200 * time.Millisecond)
	i = b.start(Config{}, j)
	told := e.waitFor(t, 1)[0]
	require.Equal(t, state.AlertMissed, told.Kind)
	missed := b.runs("tick")[slices.IndexFunc(b.runs("tick"), func(r state.Run) bool { return r.Status == state.Missed })]
	require.Equal(t, missed.ID, told.Run)
	require.Equal(t, missed.Times(), told.Count)
	b.waitStatus("tick", calm)
	i.stop()
	require.Len(t, e.keys(), 1, "that it runs again is no news")
}

// A job whose alert is edited, that is removed and that comes back, with an incident that nobody could be told.
func TestAnAlertIsEditedWhileItIsOpen(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	e := &ear{answer: deaf}
	open := func(st *state.JobStatus) bool { return st.Alerts(state.AlertFailing) }
	restart := func(jobs ...Job) *instance { return b.start(Config{}, append(jobs, secondly("other", quick))...) }
	i := restart(alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: e.notify}))
	b.waitStatus("bill", open)
	i.stop()

	i = restart(alerting("bill", broke(is), Alert{AfterFailures: 1})) // nobody to tell any more
	b.waitStatus("bill", func(st *state.JobStatus) bool { return open(st) && !st.Alerting[0].Untold })
	i.stop()
	require.Empty(t, b.spec("bill").Alert.Notify)

	quiet := &ear{}
	i = restart(alerting("bill", broke(is), Alert{Missed: true, Notify: quiet.notify}))
	b.waitStatus("bill", calm)
	i.stop()

	i = restart(alerting("bill", broke(is), Alert{AfterFailures: 1, Notify: e.notify}))
	b.waitStatus("bill", open)
	i.stop()
	i = restart() // removed
	b.waitStatus("bill", calm)
	i.stop()
	i = restart(secondly("bill", broke(is)))
	n := len(b.runs("bill"))
	b.waitRuns("bill", reached(n, state.Failed))
	i.stop()
	require.True(t, calm(new(b.status("bill"))))
	require.Empty(t, quiet.keys())
}

// Whom it takes long to tell holds up neither the jobs, nor the end of the term, nor more than a few others.
func TestTellingHoldsUpNothing(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	var now, most, ended atomic.Int64
	e := &ear{answer: func(ctx context.Context, _ int, _ Notice) error {
		for n := now.Add(1); ; {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				break
			}
		}
		defer now.Add(-1)
		<-ctx.Done()
		if errors.Is(ctx.Err(), context.Canceled) { // not by the time limit
			ended.Add(1)
		}
		return ctx.Err()
	}}
	jobs := make([]Job, 2*maxTelling)
	for i := range jobs {
		jobs[i] = alerting(fmt.Sprint("bill", i), broke(is), Alert{AfterFailures: 1, Notify: e.notify})
	}
	i := b.start(Config{}, jobs...)
	e.waitFor(t, maxTelling)
	n := len(b.runs("bill0"))
	b.waitRuns("bill0", reached(n+2, state.Failed))
	i.stop()
	require.NotZero(t, ended.Load(), "the end of the term ends the calls")
	require.Equal(t, int64(maxTelling), most.Load())
	require.Zero(t, now.Load())
	for _, err := range i.events.failedDeliveries() {
		require.NotEqual(t, context.Canceled.Error(), err.Error(), "the end of the term says nothing of who is told")
	}
}

func TestWhoIsToldMayFail(t *testing.T) {
	b := newBench(t)
	is := &atomic.Bool{}
	is.Store(true)
	panics, exits := &ear{answer: func(_ context.Context, call int, _ Notice) error {
		if call == 1 {
			panic("boom")
		}
		return nil
	}}, &ear{answer: func(_ context.Context, call int, _ Notice) error {
		if call == 1 {
			runtime.Goexit()
		}
		return nil
	}}
	refuses := &ear{answer: func(context.Context, int, Notice) error { return Permanent(errors.New("no such channel")) }}
	i := b.start(Config{},
		alerting("panics", broke(is), Alert{AfterFailures: 1, Notify: panics.notify}),
		alerting("exits", broke(is), Alert{AfterFailures: 1, Notify: exits.notify}),
		alerting("refuses", broke(is), Alert{AfterFailures: 1, Notify: refuses.notify}),
	)
	for _, job := range []string{"panics", "exits", "refuses"} {
		b.waitStatus(job, func(st *state.JobStatus) bool { return len(st.Alerting) == 1 && !st.Alerting[0].Untold })
	}
	i.stop()
	require.Len(t, panics.keys(), 2)
	require.Len(t, exits.keys(), 2)
	require.Len(t, refuses.keys(), 1, "what is refused for good is not tried again")
	i.waitFor(func(ev Event) bool { n, ok := ev.(Notified); return ok && n.Job == "refuses" && n.GivenUp })
	i.waitFor(func(ev Event) bool { n, ok := ev.(Notified); return ok && n.Job == "panics" && n.Err == nil })
}

func TestPausesBetweenCalls(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("bill", st.s.ID())
	fail := func(after time.Duration) time.Duration {
		st.herald.debts["bill"] = orDefault(st.herald.debts["bill"], &debt{})
		st.herald.telling++
		require.NoError(t, st.toldOne("bill", delivery{err: errors.New("no"), after: after}))
		return time.Until(st.herald.debts["bill"].again)
	}
	for pause := firstTellPause; pause < maxTellPause; pause = min(2*pause, maxTellPause) {
		got := fail(0)
		require.LessOrEqual(t, got, pause)
		require.Greater(t, got, pause/2-time.Second)
	}
	for range 100 {
		require.LessOrEqual(t, fail(0), maxTellPause)
	}
	require.LessOrEqual(t, fail(24*time.Hour), maxAskedPause)
	require.Greater(t, fail(24*time.Hour), maxAskedPause-time.Minute)
	require.Zero(t, st.herald.telling)

	st.tellAgain()
	require.Empty(t, st.herald.queue, "it is not time yet")
	require.False(t, st.herald.again.IsZero())
	st.herald.debts["bill"].again = time.Now()
	st.herald.again = time.Now()
	st.tellAgain()
	require.Empty(t, st.herald.debts, "nothing is owed of it any more")
	require.False(t, js.reload)
}

// What is read from etcd can be older than what was noted down since: nothing is told by it.
func TestAStatusFromBeforeTheNoteIsNotToldAgain(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("bill", st.s.ID())
	e := &ear{}
	j := alerting("bill", quick, Alert{AfterFailures: 1, Notify: e.notify})
	js.job = mustCompile(t, j)
	js.def.View.Status.Alerting = []state.Incident{{Kind: state.AlertFailing, Run: "x", Untold: true}}
	st.herald.noted["bill"] = js.def.View.Revision + 1
	js.working = true // so that it is not looked at
	st.owe(js)
	require.Empty(t, st.herald.debts)
	require.True(t, js.reload)
}

// The same of one that is read while the job waits for its turn.
func TestAStatusFromBeforeTheNoteIsNotToldAgainLater(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("bill", st.s.ID())
	e := &ear{}
	js.job = mustCompile(t, alerting("bill", quick, Alert{AfterFailures: 1, Notify: e.notify}))
	js.def.View.Status.Alerting = []state.Incident{{Kind: state.AlertFailing, Run: "x", Untold: true}}
	js.working = true // so that it is not looked at
	st.herald.noted["bill"] = js.def.View.Revision
	st.herald.telling = maxTelling
	st.owe(js)
	require.Equal(t, []string{"bill"}, st.herald.queue)
	js.def.View.Revision--
	st.herald.telling = 0
	st.tellNext()
	require.Zero(t, st.herald.telling)
	require.Empty(t, st.herald.debts)
	require.True(t, js.reload)
}

// What was told and could not be noted down is noted down later, and not told again.
func TestWhatWasToldIsNotedLater(t *testing.T) {
	st := newStill(t)
	js, _ := st.running("bill", st.s.ID())
	e := &ear{}
	js.job = mustCompile(t, alerting("bill", quick, Alert{AfterFailures: 1, Notify: e.notify}))
	js.def.View.Status.Alerting = []state.Incident{{Kind: state.AlertFailing, Run: "x", Untold: true}}
	kv := &faultyKV{KV: st.s.client.KV, prefix: st.store.Keys().Status("bill"), fault: func(clientv3.Txn) (*clientv3.TxnResponse, error) {
		return nil, rpctypes.ErrNoSpace
	}}
	st.s.client.KV = kv
	st.owe(js)
	require.NoError(t, (<-st.done)(st.term))
	require.True(t, kv.made.Load())
	require.Equal(t, []string{"default/bill/failing/x"}, e.keys())

	st.herald.debts["bill"].again = time.Now()
	st.herald.again = time.Now()
	st.tellAgain()
	require.NoError(t, (<-st.done)(st.term))
	require.Len(t, e.keys(), 1)
	require.False(t, st.status("bill").Alerting[0].Untold)
	require.Empty(t, st.herald.debts)
}

func TestNotices(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	j := mustCompile(t, alerting("bill", quick, Alert{AfterFailures: 3, Overrun: 20 * time.Minute, Missed: true}))
	in := state.Incident{Run: "20261130T010000Z", Since: at, Count: 3, Error: "no money\nat all", ResolvedAt: at.Add(time.Hour)}
	for kind, want := range map[state.AlertKind]string{
		state.AlertFailing:   "etcdcron: job bill is failing: 3 failures in a row, run 20261130T010000Z ended at 2026-11-30T01:00:00Z: no money",
		state.AlertRecovered: "etcdcron: job bill has recovered: a run succeeded at 2026-11-30T02:00:00Z, after 3 failures in a row: no money",
		state.AlertMissed:    "etcdcron: job bill has missed 3 scheduled times, from 2026-11-30T01:00:00Z on: no money",
		state.AlertOverrun:   "etcdcron: run 20261130T010000Z of job bill goes on for more than 20m0s, since 2026-11-30T01:00:00Z: no money",
	} {
		require.Equal(t, want, noticeOf(j, &in, kind, "a", "default").Text)
	}
	in.Count, in.Error = 1, ""
	n := noticeOf(j, &in, state.AlertFailing, "a", "staging")
	require.Equal(t, "etcdcron: staging: job bill is failing: 1 failure, run 20261130T010000Z ended at 2026-11-30T01:00:00Z", n.Text)
	body, err := json.Marshal(n)
	require.NoError(t, err)
	require.JSONEq(t, `{"job":"bill","kind":"failing","run":"20261130T010000Z","since":"2026-11-30T01:00:00Z","count":1,"error":"",`+
		`"instance":"a","namespace":"staging","text":"`+n.Text+`"}`, string(body))
}

func TestAlertsThatCannotBe(t *testing.T) {
	t.Parallel()
	e := &ear{}
	for _, tc := range []struct {
		alert Alert
		want  string
	}{
		{Alert{AfterFailures: -1}, "alert.after_failures: -1 is negative"},
		{Alert{Overrun: 999 * time.Millisecond}, "alert.overrun: 999ms is too short; use at least 1s"},
		{Alert{Overrun: -time.Second}, "alert.overrun: -1s is too short; use at least 1s"},
		{Alert{Notify: e.notify}, "alert: it never alerts; use after_failures, missed or overrun"},
		{Alert{Missed: true, Target: string(make([]byte, MaxText+1))}, "alert.target: it has 4097 bytes, at most 4096 are allowed"},
	} {
		require.ErrorContains(t, alerting("a", quick, tc.alert).Check(), tc.want)
	}
	s, err := New(newBenchInLine(t).client, Config{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Register(alerting("a", quick, Alert{Missed: true, Target: "us"})), "a target needs Notify")
	require.NoError(t, s.Register(alerting("b", quick, Alert{Missed: true})))
}

// An owner of a run that goes on when its job is removed may say something of it that nobody took away.
func TestAJobThatReturnsBeginsWithoutIncidents(t *testing.T) {
	t.Parallel()
	j := mustCompile(t, alerting("a", quick, Alert{AfterFailures: 1}))
	was := state.Definition{SpecRev: 1, Spec: specOf(j)}
	was.Spec.UID, was.Spec.Retired = "u", true
	was.View.Status = state.JobStatus{UID: "u", Alerting: []state.Incident{{Kind: state.AlertFailing, Run: "x"}}}
	_, status, changed := definition(j, was, "code", time.Unix(1_800_000_000, 0))
	require.True(t, changed)
	require.Empty(t, status.Alerting)
	require.Nil(t, alertOf(&was), "nor does the leader say more of it meanwhile")
	was.Spec.Retired = false
	require.Equal(t, j.alert, alertOf(&was))
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	require.Equal(t, at, firstStart(&state.Run{StartedAt: at}))
	require.Equal(t, at, firstStart(&state.Run{StartedAt: at.Add(time.Hour), Attempts: []state.Attempt{{StartedAt: at}}}))
}

func TestACallHasATimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := Alert{Notify: func(ctx context.Context, _ Notice) error { <-ctx.Done(); return ctx.Err() }}
		begun := time.Now()
		require.EqualError(t, a.notify(t.Context(), Notice{}).err, context.DeadlineExceeded.Error())
		require.Equal(t, tellLimit, time.Since(begun))
	})
}
