package web

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

// jobAddress is the page of a job, which says what came of a form; runAddress that of a run.
func jobAddress(job, said string) string { return "/jobs/" + job + "?said=" + said }

func runAddress(job, run, said string) string {
	return "/jobs/" + job + "/runs/" + url.PathEscape(run) + "?said=" + said
}

func trigger(ctx context.Context, v *visit) (string, error) {
	job, err := v.job()
	if err != nil {
		return "", err
	}
	r, err := steer.Trigger(ctx, v.store, job, nil, v.note(), v.now)
	return runAddress(job, r.ID, "triggered"), err
}

func retry(ctx context.Context, v *visit) (string, error) {
	job, err := v.job()
	if err != nil {
		return "", err
	}
	r, err := steer.Retry(ctx, v.store, job, v.PathValue("run"), v.note(), v.now)
	return runAddress(job, r.ID, "retried"), err
}

func cancel(ctx context.Context, v *visit) (string, error) {
	job, err := v.job()
	if err != nil {
		return "", err
	}
	id := v.PathValue("run")
	_, withdrawn, err := steer.Cancel(ctx, v.store, job, id, v.note(), v.now)
	if withdrawn != nil {
		return jobAddress(job, "withdrawn"), err
	}
	return runAddress(job, id, "canceled"), err
}

func pause(ctx context.Context, v *visit) (string, error) {
	return control(ctx, v, steer.Pause, "paused")
}

func resume(ctx context.Context, v *visit) (string, error) {
	return control(ctx, v, steer.Resume, "resumed")
}

func control(
	ctx context.Context, v *visit,
	do func(context.Context, *state.Store, string, steer.Note) (state.Definition, steer.Controlled, error), said string,
) (string, error) {
	job, err := v.job()
	if err != nil {
		return "", err
	}
	_, _, err = do(ctx, v.store, job, v.note())
	return jobAddress(job, said), err
}

// formTime is how a form writes an instant: local to the zone of the job, in whole minutes or seconds.
const formTime = "2006-01-02T15:04"

// previewView is what a backfill would run.
type previewView struct {
	Job      string
	From, To string // as the form had them
	Reason   string
	Title    string
	Total    string
	Times    []nextTime
	Last     string
	MayAsk   bool
}

func previewPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "preview"}
	q := v.URL.Query()
	plan, err := v.plan(ctx, q.Get("from"), q.Get("to"))
	if err != nil {
		return c, err
	}
	if err := plan.Refused(ctx, v.now); err != nil {
		return c, err
	}
	p := plan.Preview()
	view := previewView{
		Job: p.Job, From: q.Get("from"), To: q.Get("to"), Reason: q.Get("reason"), MayAsk: v.who.MayAsk,
		Title: v.lang.say("job.preview_title", p.Job), Total: v.lang.say("job.preview_total", number(p.Total)),
		Times: v.times(p.Times, plan.Zone().String()),
	}
	if p.Total > int64(len(p.Times)) {
		view.Last = v.lang.say("job.preview_last", p.Last.In(plan.Zone()).Format("2006-01-02 15:04:05 -0700"))
	}
	c.title, c.data = view.Title, &view
	return c, nil
}

func backfill(ctx context.Context, v *visit) (string, error) {
	plan, err := v.plan(ctx, v.PostFormValue("from"), v.PostFormValue("to"))
	if err != nil {
		return "", err
	}
	_, err = plan.Submit(ctx, v.note(), v.now)
	return jobAddress(plan.Preview().Job, "backfill"), err
}

// plan reads the range of a backfill, which is written in UTC.
func (v *visit) plan(ctx context.Context, from, to string) (*steer.Backfill, error) {
	job, err := v.job()
	if err != nil {
		return nil, err
	}
	first, err := parseFormTime(from)
	if err != nil {
		return nil, err
	}
	last, err := parseFormTime(to)
	if err != nil {
		return nil, err
	}
	return steer.PlanBackfill(ctx, v.store, job, first, last, v.now)
}

// parseFormTime reads what a field for an instant sends: with seconds only when they are not zero.
func parseFormTime(text string) (time.Time, error) {
	for _, layout := range []string{formTime, "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, &fault.Error{
		Kind: fault.BadInput, Err: errors.New("a backfill needs the first and the last instant of its range"), Hint: "instants such as 2026-11-01T00:00",
	}
}
