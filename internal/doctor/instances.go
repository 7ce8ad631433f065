package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// How instances are asked for the time.
const (
	askedInstances = 20
	askTimeout     = 2 * time.Second
	// dateStep is what an answer's Date leaves open: it has whole seconds.
	dateStep     = time.Second
	clockWarning = 2 * time.Second
	clockProblem = 30 * time.Second
)

// leadership looks whether anybody leads.
func (e *examination) leadership(ctx context.Context) {
	call, cancel := e.call(ctx)
	defer cancel()
	info, err := leader.Current(call, e.Client, e.Store.Keys())
	switch {
	case errors.Is(err, leader.ErrNoLeader):
		e.sayf(Problem, "leader", "start an instance: etcdcron serve -c FILE; when one has just stopped, another leads within seconds", "nobody leads: nothing is run")
	case err != nil:
		e.blind("leader", "who leads", err)
	default:
		e.leads = true
		e.sayf(OK, "leader", "", "%s leads, elected %s", info.Instance, term.Ago(info.ElectedAt, e.Now()))
	}
}

// instances looks at who takes part, and at their clocks.
func (e *examination) instances(ctx context.Context) {
	all, err := e.Store.Instances(ctx)
	if err != nil {
		e.blind("instances", "who takes part", err)
		return
	}
	versions := map[string]bool{}
	for i := range all {
		versions[all[i].Version] = true
	}
	switch {
	case len(all) == 0 && e.leads:
		e.sayf(Warning, "instances", "etcdcron leader says who leads", "no instance says that it takes part, and yet one leads")
	case len(all) == 0:
		e.sayf(Problem, "instances", "etcdcron serve -c FILE", "no instance takes part")
	case len(versions) > 1:
		e.sayf(Warning, "instances", "etcdcron instances shows them; finish the upgrade", "%s take part, of %d versions", count(len(all), "instance"), len(versions))
	case len(all) == 1:
		e.sayf(OK, "instances", "", "1 instance takes part: when it stops, nobody takes over")
	default:
		e.sayf(OK, "instances", "", "%d instances take part", len(all))
	}
	e.clocks(ctx, all)
}

// clockOf is what an instance says what time it is, against ours.
type clockOf struct {
	ahead, give time.Duration // and how much of that the question leaves open
	err         error
}

// clocks compares the instances' clocks with ours.
func (e *examination) clocks(ctx context.Context, all []state.Instance) {
	asked := all[:min(len(all), askedInstances)]
	answers := make([]clockOf, len(asked))
	var asking sync.WaitGroup
	for i := range asked {
		asking.Go(func() { answers[i] = e.ask(ctx, asked[i].Address) })
	}
	asking.Wait()
	var unasked, right []string
	for i, a := range answers {
		name := asked[i].ID
		off := max(a.ahead.Abs()-a.give, 0)
		text := fmt.Sprintf("the clock of %s is %s %s ours", name, term.Elapsed(a.ahead.Abs().Round(time.Second)), map[bool]string{true: "ahead of", false: "behind"}[a.ahead > 0])
		const hint = "have chrony or ntpd keep the clocks: a leader decides by its own what is due"
		switch {
		case a.err != nil:
			unasked = append(unasked, name)
		case off >= clockProblem:
			e.sayf(Problem, "clocks", hint, "%s: when it leads, jobs run at another time", text)
		case off >= clockWarning:
			e.sayf(Warning, "clocks", hint, "%s", text)
		default:
			right = append(right, name)
		}
	}
	slices.Sort(unasked)
	if len(right) > 0 {
		e.sayf(OK, "clocks", "", "of %s within %s of ours", named(right), clockWarning)
	}
	if len(unasked) > 0 {
		e.sayf(Warning, "clocks", "their HTTP may listen for their own machine only; run doctor there too",
			"not looked at: HTTP of %s does not answer from here (%s)", named(unasked), e.host)
	}
}

// ask asks an instance for the time, by the Date of an answer that is the same for everybody.
func (e *examination) ask(ctx context.Context, address string) clockOf {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return clockOf{err: fmt.Errorf("address %q: %w", address, net.InvalidAddrError("no URL"))}
	}
	ctx, cancel := context.WithTimeout(ctx, min(askTimeout, e.Timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("livez").String(), http.NoBody)
	if err != nil {
		return clockOf{err: err}
	}
	sent := e.Now()
	resp, err := e.HTTP.Do(req)
	if err != nil {
		return clockOf{err: err}
	}
	took := e.Now().Sub(sent)
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // so that the connection can be used again
	_ = resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return clockOf{err: err}
	}
	// The Date is rounded down, and was written some time between the question and the answer.
	return clockOf{ahead: date.Add(dateStep / 2).Sub(sent.Add(took / 2)), give: dateStep/2 + took/2}
}
