package web

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

const (
	nextTimes   = 10
	runsPerPage = 25
)

// jobView is a job with all around it.
type jobView struct {
	Name        string
	Description string
	Badges      []badge
	Schedule    schedule
	Invalid     string
	Retired     bool
	Pause       *pauseNote // nil when it is not paused
	LastError   string
	MayAsk      bool
	Requests    []requestRow
	Live        []liveRow
	Next        []nextTime
	Zone        string
	Policies    []fact
	Totals      []fact
	Outcomes    []fact
	Incidents   []string
	Plot        *plot
	From, To    string // what the form for a backfill has in it at first

	Statuses []option
	Filtered bool
	Runs     []runRow
	Older    string // addresses; "" for none
	Newest   string
}

// pauseNote is by whom a job was paused, when and why.
type pauseNote struct {
	Text, Reason string
	At           moment
}

// nextTime is a time at which a job will be due.
type nextTime struct {
	At    moment
	Local string // in the zone of the job
}

// liveRow is a run that goes on.
type liveRow struct {
	ID, Instance string
	Attempt      int
	Started      moment
	RetryAt      *moment
	Progress     *progress
}

// requestRow is something that was asked for and that nobody has acted on yet.
type requestRow struct {
	ID, Text, By, Reason string
	At                   moment
	Withdraw             bool
}

// runRow is a run in the list.
type runRow struct {
	ID       string
	Status   state.RunStatus
	Reason   string
	Times    string // "" when it stands for one scheduled time
	Trigger  string
	At       moment
	Took     string
	Late     string
	Attempt  int
	Instance string
	Line     *timeline
	Error    string
}

func jobPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "job"}
	name, err := v.job()
	if err != nil {
		return c, err
	}
	c.title, c.events = name, "/v1/events?job="+url.QueryEscape(name)
	d, err := inspect.Brief(ctx, v.store, name, v.now)
	if err != nil {
		return c, err
	}
	view := v.viewOf(d)
	if err := v.history(ctx, view, name, time.Duration(d.Definition.Timeout)); err != nil {
		return c, err
	}
	if view.Outcomes, err = v.outcomes(ctx, &d.Definition); err != nil {
		return c, err
	}
	c.data = view
	return c, nil
}

// viewOf is all of a job but its history.
func (v *visit) viewOf(d *inspect.Description) *jobView {
	spec, st := &d.Definition, &d.Status
	def := state.Definition{Spec: *spec, SpecRev: 1, Control: d.Control, View: state.View{Status: *st}}
	s := inspect.Summarize(def, v.now)
	s.Invalid = d.Invalid
	view := &jobView{
		Name: spec.Name, Description: spec.Description, Badges: v.lang.badges(&def, &s, v.now), Schedule: v.lang.scheduleOf(spec),
		Retired: spec.Retired, LastError: st.LastError, MayAsk: v.who.MayAsk, Zone: spec.TimeZone,
		Policies: v.lang.policies(spec, st), Totals: v.lang.totals(st),
		From: v.now.Add(-day).Format(formTime), To: v.now.Format(formTime),
	}
	if d.Invalid != nil {
		view.Invalid = *d.Invalid
	}
	if c := &d.Control; c.Paused {
		view.Pause = &pauseNote{Text: v.lang.say("job.paused_plain"), Reason: c.Reason, At: v.lang.moment(c.At, v.now)}
		if c.By != "" {
			view.Pause.Text = v.lang.say("job.paused_by", c.By)
		}
	}
	if len(d.Next) > 0 {
		if due, err := cronrunner.DueTimes(spec); err == nil {
			n := int(min(nextTimes, cronrunner.RunsLeft(spec, st)))
			view.Next = v.times(inspect.Times(due, v.now, n), spec.TimeZone)
		}
	}
	for i := range st.Alerting {
		if in := &st.Alerting[i]; in.Open() {
			view.Incidents = append(view.Incidents, v.lang.incident(in, v.now))
		}
	}
	for i := range d.Live {
		view.Live = append(view.Live, v.liveRow(spec.Name, &d.Live[i]))
	}
	for i := range d.Requests {
		view.Requests = append(view.Requests, v.requestRow(&d.Requests[i]))
	}
	return view
}

func (v *visit) times(all []time.Time, zone string) []nextTime {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	times := make([]nextTime, len(all))
	for i, t := range all {
		times[i] = nextTime{At: v.lang.moment(t, v.now), Local: t.In(loc).Format("2006-01-02 15:04:05 -0700")}
	}
	return times
}

func (v *visit) liveRow(job string, r *inspect.LiveRun) liveRow {
	run := state.Run{Job: job, ID: r.ID, Attempt: r.Attempt, StartedAt: r.StartedAt}
	row := liveRow{
		ID: r.ID, Instance: r.Instance, Attempt: r.Attempt, Started: v.lang.moment(r.StartedAt, v.now),
		Progress: v.lang.progressOf(r.Progress, v.pages.paces.of(&run, r.Progress), v.now),
	}
	if r.RetryAt != nil {
		row.RetryAt = new(v.lang.moment(*r.RetryAt, v.now))
	}
	return row
}

func (v *visit) requestRow(r *state.Request) requestRow {
	row := requestRow{ID: r.ID, By: r.By, Reason: r.Reason, At: v.lang.moment(r.At, v.now), Withdraw: v.who.MayAsk && r.ID != ""}
	switch r.Kind {
	case state.AskRetry, state.AskCancel:
		row.Text = v.lang.say("request."+string(r.Kind), r.Run)
	case state.AskBackfill:
		row.Text = v.lang.say("request.backfill", stamp(r.From), stamp(r.To), r.Done, r.Total)
	default:
		row.Text = v.lang.say("request.trigger")
	}
	return row
}

// history fills in the runs: those that the address asks for, and the durations of the last ones.
func (v *visit) history(ctx context.Context, view *jobView, job string, timeout time.Duration) error {
	q := v.URL.Query()
	status, before := state.RunStatus(q.Get("status")), q.Get("before")
	if !slices.Contains(allStatuses, status) {
		status = ""
	}
	if _, err := state.RunIDTime(before); err != nil {
		before = ""
	}
	view.Filtered = status != ""
	view.Statuses = []option{{Text: v.lang.say("state.all"), Chosen: status == ""}}
	for _, s := range allStatuses {
		view.Statuses = append(view.Statuses, option{Value: string(s), Text: v.lang.status(string(s)), Chosen: status == s})
	}
	last, next, err := inspect.History(ctx, v.store, job, "", plotRuns)
	if err != nil {
		return err
	}
	view.Plot = v.plot(last, timeout)
	runs := last
	switch {
	case status != "" || before != "":
		filter := inspect.Filter{}
		if status != "" {
			filter.Statuses = []state.RunStatus{status}
		}
		if runs, next, err = inspect.Matching(ctx, v.store, job, before, runsPerPage, filter); err != nil {
			return err
		}
	case len(runs) > runsPerPage:
		runs = runs[:runsPerPage]
		next = runs[runsPerPage-1].ID
	}
	view.Runs = v.runRows(runs)
	if next != "" {
		view.Older = historyAddress(job, status, next)
	}
	if before != "" {
		view.Newest = historyAddress(job, status, "")
	}
	return nil
}

var allStatuses = []state.RunStatus{state.Running, state.Pending, state.Succeeded, state.Failed, state.Skipped, state.Missed, state.Canceled}

func historyAddress(job string, status state.RunStatus, before string) string {
	q := make(url.Values)
	if status != "" {
		q.Set("status", string(status))
	}
	if before != "" {
		q.Set("before", before)
	}
	address := "/jobs/" + job
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	return address + "#runs"
}

func (v *visit) plot(runs []state.Run, timeout time.Duration) *plot {
	points := make([]point, 0, len(runs))
	for i := range runs {
		if runs[i].Status.Final() {
			points = append(points, pointOf(&runs[i]))
		}
	}
	return v.lang.plotOf(points, timeout)
}

func (v *visit) runRows(runs []state.Run) []runRow {
	var longest time.Duration
	for i := range runs {
		longest = max(longest, stretchOf(&runs[i], v.now))
	}
	rows := make([]runRow, len(runs))
	for i := range runs {
		rows[i] = v.runRow(&runs[i], longest)
	}
	return rows
}

func (v *visit) runRow(r *state.Run, longest time.Duration) runRow {
	row := runRow{
		ID: r.ID, Status: r.Status, Trigger: v.lang.trigger(r.Trigger), At: v.lang.moment(r.ScheduledAt, v.now),
		Attempt: r.Attempt, Instance: r.Instance, Line: v.lang.timelineOf(r, longest, v.now), Error: firstLine(r.Error),
	}
	if r.Reason != "" {
		row.Reason = v.lang.reason(r.Reason)
	}
	if r.Count > 1 {
		row.Times = v.lang.say("times.until", r.Count, stamp(r.Covers()))
	}
	if r.Attempt > 0 {
		row.Late = v.lang.millis(r.LatenessMS)
		if r.Status.Final() {
			row.Took = v.lang.millis(r.DurationMS)
		}
	}
	return row
}

func (l language) trigger(t state.Trigger) string {
	if key := "trigger." + string(t); knows(key) {
		return l.say(key)
	}
	return string(t)
}
