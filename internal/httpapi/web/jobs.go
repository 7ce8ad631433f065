package web

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// jobsPerPage is how many jobs a page of the list has: as many as stay well below 100 KiB.
const jobsPerPage = 40

// jobList is the list of jobs.
type jobList struct {
	Filter   listing
	States   []option
	Sorts    []option
	Tallies  []tally
	Rows     []jobRow
	Caption  string
	Empty    bool // there is no job at all
	Cut      string
	Page     string
	Previous string // addresses; "" for none
	Next     string
	Leader   string // "" when nobody leads
	Unread   bool   // some strips could not be read in time
}

// option is a choice in a form.
type option struct {
	Value, Text string
	Chosen      bool
}

// tally is how many jobs are in a state.
type tally struct {
	State, Text string
	Count       int
	Address     string
	Chosen      bool
}

// jobRow is a job in the list.
type jobRow struct {
	Name        string
	Description string
	Badges      []badge
	Progress    *progress
	Schedule    schedule
	Next        moment
	HasNext     bool
	LastStatus  state.RunStatus
	Last        moment
	LastRun     string
	Took        string
	Rate        string
	Strip       strip
	Unread      bool
}

// badge is a state in words, with the icon and the color that go with it.
type badge struct{ Kind, Text string }

// schedule is a schedule in words, and as it was written.
type schedule struct{ Words, Expression string }

func jobsPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "jobs", title: v.lang.say("jobs.title"), events: "/v1/events"}
	q := v.URL.Query()
	filter := listing{Search: state.CutHead(q.Get("q"), maxSearch), State: q.Get("state"), Sort: q.Get("sort")}
	if !slices.Contains(jobStates, filter.State) {
		filter.State = ""
	}
	if jobOrders[filter.Sort] == nil {
		filter.Sort = sortNames[0]
	}
	entries, more, err := v.pages.roster.get(ctx, v.store, v.pages.now)
	if err != nil {
		return c, err
	}
	info, err := leader.Current(ctx, v.client, v.store.Keys())
	if err != nil && !errors.Is(err, leader.ErrNoLeader) {
		return c, err
	}
	names, counts, total := filter.list(entries)
	list := jobList{Filter: filter, Empty: len(entries) == 0, Leader: info.Instance}
	if more {
		list.Cut = v.lang.say("jobs.cut", number(rosterJobs))
	}
	list.choices(v, counts, total)
	page, _ := strconv.Atoi(q.Get("page"))
	from, to := list.turn(v, page, len(names))
	if list.Rows, err = v.jobRows(ctx, names[from:to]); err != nil {
		return c, err
	}
	list.Unread = slices.ContainsFunc(list.Rows, func(r jobRow) bool { return r.Unread })
	c.data = &list
	return c, nil
}

// maxSearch is how much of a search is looked for, in bytes.
const maxSearch = 200

// choices fills in what one can choose from.
func (l *jobList) choices(v *visit, counts map[string]int, total int) {
	l.States = append(l.States, option{Text: v.lang.say("state.all"), Chosen: l.Filter.State == ""})
	all := l.Filter
	all.State = ""
	l.Tallies = append(l.Tallies, tally{State: "all", Text: v.lang.say("state.all"), Count: total, Address: all.address(0), Chosen: l.Filter.State == ""})
	for _, s := range jobStates {
		l.States = append(l.States, option{Value: s, Text: v.lang.say("state." + s), Chosen: l.Filter.State == s})
		if counts[s] > 0 || l.Filter.State == s {
			one := l.Filter
			one.State = s
			l.Tallies = append(l.Tallies, tally{State: s, Text: v.lang.say("state." + s), Count: counts[s], Address: one.address(0), Chosen: l.Filter.State == s})
		}
	}
	for _, s := range sortNames {
		l.Sorts = append(l.Sorts, option{Value: s, Text: v.lang.say("sort." + s), Chosen: l.Filter.Sort == s})
	}
}

// turn says which of n jobs a page has, and where the pages beside it are.
func (l *jobList) turn(v *visit, page, n int) (from, to int) {
	pages := max((n+jobsPerPage-1)/jobsPerPage, 1)
	page = min(max(page, 1), pages)
	from, to = (page-1)*jobsPerPage, min(page*jobsPerPage, n)
	if n > 0 {
		l.Caption = v.lang.say("jobs.caption", from+1, to, n)
	}
	if pages > 1 {
		l.Page = v.lang.say("jobs.page", page, pages)
	}
	if page > 1 {
		l.Previous = l.Filter.address(page - 1)
	}
	if page < pages {
		l.Next = l.Filter.address(page + 1)
	}
	return from, to
}

// address is where a page of the list is; the first one for 0.
func (l listing) address(page int) string {
	q := make(url.Values)
	set := func(name, value, otherwise string) {
		if value != otherwise {
			q.Set(name, value)
		}
	}
	set("q", l.Search, "")
	set("state", l.State, "")
	set("sort", l.Sort, sortNames[0])
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// jobRows reads the named jobs, their last runs and how far those are that run.
func (v *visit) jobRows(ctx context.Context, names []string) ([]jobRow, error) {
	found, err := v.store.Definitions(ctx, names)
	if err != nil {
		return nil, err
	}
	defs := make([]state.Definition, 0, len(names))
	for _, name := range names {
		def := found[name]
		if def.SpecRev == 0 && def.View.Revision == 0 {
			continue // it was removed just now
		}
		def.Spec.Name = name // also when it is broken
		defs = append(defs, def)
	}
	live := v.liveProgress(ctx, defs)
	points, _ := v.pages.strips.of(ctx, v.store, defs, v.now)
	rows := make([]jobRow, len(defs))
	for i := range defs {
		rows[i] = v.jobRow(&defs[i], points[i])
		rows[i].Progress = live[i]
	}
	return rows, nil
}

// liveProgress reads how far the first run of each running job is. What cannot be read is left out: the row says that
// it is running.
func (v *visit) liveProgress(ctx context.Context, defs []state.Definition) []*progress {
	all := make([]*progress, len(defs))
	var reading sync.WaitGroup
	for i := range defs {
		st := &defs[i].View.Status
		if len(st.Live) == 0 {
			continue
		}
		reading.Go(func() {
			select {
			case v.pages.strips.readers <- struct{}{}:
				defer func() { <-v.pages.strips.readers }()
			case <-ctx.Done():
				return
			}
			if p, err := v.store.ProgressOf(ctx, defs[i].Spec.Name, st.Live[0]); err == nil {
				all[i] = v.lang.progressOf(p, pace{}, v.now)
			}
		})
	}
	reading.Wait()
	return all
}

func (v *visit) jobRow(def *state.Definition, points []point) jobRow {
	s := inspect.Summarize(*def, v.now)
	st := &def.View.Status
	row := jobRow{
		Name: s.Name, Description: s.Description, Schedule: v.lang.scheduleOf(&def.Spec), Badges: v.lang.badges(def, &s, v.now),
		LastRun: st.LastRunID, Strip: v.lang.stripOf(points), Unread: points == nil,
	}
	if row.Unread {
		row.Strip.Label = v.lang.say("strip.unread")
	}
	if s.NextRunAt != nil {
		row.Next, row.HasNext = v.lang.moment(*s.NextRunAt, v.now), true
	}
	if s.LastFinishedAt != nil {
		row.LastStatus, row.Last, row.Took = st.LastStatus, v.lang.moment(*s.LastFinishedAt, v.now), v.lang.millis(st.LastDurationMS)
	}
	if s.SuccessRate != nil {
		row.Rate = percent(*s.SuccessRate)
	}
	return row
}

// scheduleOf is a job's schedule in words.
func (l language) scheduleOf(spec *state.Spec) schedule {
	s := schedule{Words: spec.Schedule, Expression: spec.Schedule + " " + spec.TimeZone}
	if parsed, err := cronrunner.ParseSchedule(spec.Schedule, spec.TimeZone); err == nil {
		s.Words = l.scheduleWords(parsed.Words())
	}
	return s
}

// badges says in words in which states a job is, the gravest first; one that is in none is idle.
func (l language) badges(def *state.Definition, s *inspect.Job, now time.Time) []badge {
	st := &def.View.Status
	var all []badge
	if s.Invalid != nil {
		all = append(all, badge{isInvalid, l.say("state.invalid")})
	}
	for _, in := range statesOf(def, now) {
		text := l.say("state." + in)
		switch in {
		case isInvalid:
			continue
		case isRunning:
			if st.Running > 1 {
				text = l.say("state.many", st.Running)
			}
		case isWaiting:
			text = l.say("state.queue", st.Pending)
		case isFailing:
			text = l.say("state.failures", st.ConsecutiveFailures)
		case isOverdue:
			text = l.say("state.is_late", l.span(lateBy(def, now).Round(time.Second)))
		}
		all = append(all, badge{in, text})
	}
	switch {
	case len(all) > 0:
	case s.NextRunAt == nil:
		all = append(all, badge{"over", l.say("state.over")})
	case s.LastFinishedAt == nil:
		all = append(all, badge{"new", l.say("state.new")})
	default:
		all = append(all, badge{"idle", l.say("state.idle")})
	}
	return all
}
