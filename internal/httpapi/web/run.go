package web

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

// runView is a run with all around it.
type runView struct {
	Job, ID      string
	Status       state.RunStatus
	Reason       string
	Over         bool
	Running      bool
	MayAsk       bool
	Cancel       string // who asked for its end; "" when nobody has
	Progress     *progress
	RetryAt      *moment
	Facts        []fact
	Moments      []momentFact
	Debug        []fact
	Attempts     []attemptRow
	Checkpoint   string
	CheckpointBy string // the run that wrote it, if it was another one
	Repeats      string
	Error        string
	Output       string
}

// momentFact is a fact that is an instant.
type momentFact struct {
	Name string
	At   moment
}

// attemptRow is one try of a run.
type attemptRow struct {
	Attempt        int
	Instance       string
	Started, Ended moment
	Took           string
	Result         string
	Status         state.RunStatus
	Error          string
	Token          int64
}

func runPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "run"}
	job, err := v.job()
	if err != nil {
		return c, err
	}
	id := v.PathValue("run")
	c.title, c.events = v.lang.say("run.title", id), "/v1/events?job="+url.QueryEscape(job)
	d, asked, err := v.runOrRequest(ctx, job, id)
	switch {
	case err != nil:
		return c, err
	case asked != nil:
		c.template, c.data = "requested", &requestedView{Job: job, Request: v.requestRow(asked)}
	default:
		c.data = v.runView(d)
	}
	return c, nil
}

// runOrRequest reads a run, or the request that it is to come of.
func (v *visit) runOrRequest(ctx context.Context, job, id string) (*inspect.RunDetails, *state.Request, error) {
	d, err := inspect.Run(ctx, v.store, job, id, v.now)
	if f := fault.Of(err); f == nil || f.Kind != fault.NotFound {
		return d, nil, err
	}
	switch r, failed := v.store.Request(ctx, id); {
	case failed == nil && r.Job == job:
		return nil, &r.Request, nil
	case failed != nil && !errors.Is(failed, state.ErrNotFound):
		return nil, nil, failed
	}
	// It may have become a run between the two.
	d, err = inspect.Run(ctx, v.store, job, id, v.now)
	return d, nil, err
}

// requestedView is a run that somebody has asked for and that nobody has acted on yet.
type requestedView struct {
	Job     string
	Request requestRow
}

func (v *visit) runView(d *inspect.RunDetails) *runView {
	r, l := &d.Run, v.lang
	view := &runView{
		Job: r.Job, ID: r.ID, Status: r.Status, Over: r.Status.Final(), Running: r.Status == state.Running, MayAsk: v.who.MayAsk,
		Repeats: r.RetryOf, Error: r.Error, Output: strings.TrimRight(r.Output, "\r\n"), Attempts: v.attempts(r),
		Progress: l.progressOf(r.Progress, v.pages.paces.of(r, r.Progress), v.now),
	}
	if view.Over && view.Progress != nil {
		view.Progress.Rate, view.Progress.Left = "", ""
	}
	if r.Reason != "" {
		view.Reason = l.reason(r.Reason)
	}
	if d.Cancel != nil {
		view.Cancel = l.say("run.cancel_asked", orUnknown(l, d.Cancel.By), l.relative(d.Cancel.At, v.now))
	}
	if !r.RetryAt.IsZero() {
		view.RetryAt = new(l.moment(r.RetryAt, v.now))
	}
	if c := d.Checkpoint; c != nil {
		view.Checkpoint = l.say("run.checkpoint_text", c.Bytes, c.Attempt, l.relative(c.At, v.now))
		if c.Run != r.ID {
			view.CheckpointBy = c.Run
		}
	}
	view.facts(v, r)
	return view
}

func orUnknown(l language, text string) string {
	if text == "" {
		return l.say("unknown")
	}
	return text
}

// facts fills in what is told of every run.
func (view *runView) facts(v *visit, r *state.Run) {
	l := v.lang
	when := func(name string, m moment) {
		if m.ISO != "" {
			view.Moments = append(view.Moments, momentFact{l.say("run." + name), m})
		}
	}
	add := func(to *[]fact, name, text string) {
		if text != "" && text != "0" {
			*to = append(*to, fact{Name: l.say("run." + name), Text: text})
		}
	}
	when("scheduled", l.moment(r.ScheduledAt, v.now))
	if r.Attempt > 0 {
		when("started", l.moment(firstAt(r), v.now))
	}
	if view.Over {
		when("ended", l.moment(r.FinishedAt, v.now))
	}
	switch {
	case r.Attempt == 0:
	case view.Over:
		add(&view.Facts, "took", l.millis(r.DurationMS))
	default:
		add(&view.Facts, "running_for", l.span(max(v.now.Sub(firstAt(r)), 0)))
	}
	if r.Attempt > 0 {
		add(&view.Facts, "late", l.millis(r.LatenessMS))
	}
	add(&view.Facts, "trigger", l.trigger(r.Trigger))
	asked := r.RequestedBy
	if r.RequestWhy != "" {
		asked += l.say("sentence.colon") + r.RequestWhy
	}
	add(&view.Facts, "asked", asked)
	add(&view.Facts, "args", labelsText(r.Args))
	if r.Count > 1 {
		add(&view.Facts, "stands_for", l.say("times.until", r.Count, stamp(r.Covers())))
	}
	if r.ExitCode != nil {
		view.Facts = append(view.Facts, fact{Name: l.say("run.exit"), Text: strconv.Itoa(*r.ExitCode)})
	}
	add(&view.Facts, "instance", r.Instance)
	if r.TimeoutMS > 0 {
		add(&view.Facts, "timeout", l.millis(r.TimeoutMS))
	}
	add(&view.Debug, "token", strconv.FormatInt(r.FencingToken, 10))
	add(&view.Debug, "term", strconv.FormatInt(r.Term, 10))
}

// attempts are the tries of a run, the last one too.
func (v *visit) attempts(r *state.Run) []attemptRow {
	rows := make([]attemptRow, 0, len(r.Attempts)+1)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		rows = append(rows, attemptRow{
			Attempt: a.Attempt, Instance: a.Instance, Started: v.lang.moment(a.StartedAt, v.now), Ended: v.lang.moment(a.EndedAt, v.now),
			Took: v.lang.elapsed(a.EndedAt.Sub(a.StartedAt)), Result: v.lang.reason(a.Reason), Status: state.Failed, Error: a.Error, Token: a.FencingToken,
		})
	}
	if r.Attempt == 0 || !r.RetryAt.IsZero() {
		return rows
	}
	last := attemptRow{
		Attempt: r.Attempt, Instance: r.Instance, Started: v.lang.moment(r.StartedAt, v.now), Token: r.FencingToken,
		Status: r.Status, Result: v.lang.status(string(r.Status)), Error: firstLine(r.Error),
	}
	if r.Status.Final() {
		last.Ended, last.Took = v.lang.moment(r.FinishedAt, v.now), v.lang.millis(r.DurationMS)
	} else {
		last.Ended, last.Took = moment{Text: v.lang.say("run.attempt_now")}, v.lang.span(max(v.now.Sub(r.StartedAt), 0))
	}
	return append(rows, last)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
