package web

import (
	"context"
	"time"

	"github.com/etcdcron/etcdcron/internal/doctor"
)

// Bounds of an examination, which is to be over before a page has to be.
const (
	examineCall  = 2 * time.Second
	examineAgain = time.Second
)

// examinedView is what the doctor has found.
type examinedView struct {
	Verdict  string
	Findings []findingRow
}

type findingRow struct {
	Check, Kind, Icon, Level, Message, Hint string
}

// examinedPage looks for what is wrong. It is asked for with a form: it writes a key to see whether it may.
func examinedPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "examined", title: v.lang.say("doctor.title")}
	if !v.pages.examining.TryLock() {
		return c, errBusy
	}
	defer v.pages.examining.Unlock()
	findings := doctor.Examine(ctx, doctor.Config{
		Client: v.client, Store: v.store, Root: v.store.Keys().Root(), Timeout: examineCall, Again: examineAgain, Now: v.pages.now,
	})
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c.data = v.lang.examined(findings)
	return c, nil
}

func (l language) examined(findings []doctor.Finding) *examinedView {
	view := &examinedView{Verdict: l.say("doctor.none")}
	counts := make(map[doctor.Level]int)
	for i := range findings {
		f := &findings[i]
		counts[f.Level]++
		row := findingRow{Check: f.Check, Kind: "ok", Icon: "ok", Level: l.say("doctor." + string(f.Level)), Message: f.Message, Hint: f.Hint}
		switch f.Level {
		case doctor.OK:
		case doctor.Warning:
			row.Kind, row.Icon = isOverdue, "alert"
		case doctor.Problem:
			row.Kind, row.Icon = isFailing, "failed"
		}
		view.Findings = append(view.Findings, row)
	}
	if counts[doctor.Problem]+counts[doctor.Warning] > 0 {
		view.Verdict = l.say("doctor.some", counts[doctor.Problem], counts[doctor.Warning])
	}
	return view
}
