package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/executor"
)

// readAlert keeps what was inherited and is not said anew; but headers, which may be secrets, only for the webhook
// that they were written for. "none" is no alert, whatever was inherited.
func readAlert(p *parser, d *draft, path string, v *yaml.Node) bool {
	node := follow(v)
	switch {
	case node.Kind == yaml.ScalarNode && node.Value == "none":
		d.job.Alert, d.notify = cronrunner.Alert{}, nil
		return true
	case node.Kind != yaml.MappingNode:
		p.faultf(node.Line, path, `must be a mapping, not %s; write {after_failures: 3, webhook: "https://…"}, or none`, kind(node))
		return false
	case len(node.Content) == 0:
		p.faultf(node.Line, path, "is empty; write {after_failures: 3}, or none")
		return false
	}
	inherited := d.notify
	d.notify = &executor.Webhook{}
	if inherited != nil {
		d.notify.URL = inherited.URL
	}
	ok := p.parts(d, "alert", path, v, alertParts)
	_, ownURL := d.lines["alert.webhook"]
	_, ownHeaders := d.lines["alert.headers"]
	if inherited != nil && !ownURL && !ownHeaders {
		d.notify.Headers = inherited.Headers
	}
	if d.notify.URL == "" {
		d.notify = nil
		if ownHeaders && !ownURL {
			p.faultf(d.lines["alert.headers"], path+".headers", "are for a webhook, and there is none")
			return false
		}
	}
	return ok
}

var alertParts = map[string]field{
	"after_failures": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Alert.AfterFailures, ok = p.number(path, v, "it is how many runs in a row may fail")
		return ok
	}},
	"missed": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Alert.Missed, ok = p.flag(path, v)
		return ok
	}},
	// 0s is none: so a job has none, whatever the defaults say.
	"overrun": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Alert.Overrun, ok = p.durationOrNone(path, v)
		return ok
	}},
	"recovered": {read: func(p *parser, d *draft, path string, v *yaml.Node) bool {
		recovered, ok := p.flag(path, v)
		d.job.Alert.OmitRecovered = !recovered
		return ok
	}},
	"webhook": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		if follow(v).Kind == yaml.MappingNode {
			p.faultf(follow(v).Line, path, `must be text, not a mapping; write webhook: "https://…", with headers beside it`)
			return false
		}
		d.notify.URL, ok = p.word(path, v)
		return ok
	}},
	"headers": {read: func(p *parser, d *draft, path string, v *yaml.Node) bool {
		d.notify.Headers = p.headers(path, v)
		return true
	}},
}

// settleAlert makes an alert of what was read and inherited. What is inherited and never alerts, a webhook alone, is
// none; so is what the job has switched off.
func (d *draft) settleAlert() {
	a := &d.job.Alert
	_, own := d.lines["alert"]
	for _, part := range []string{"after_failures", "missed", "overrun"} {
		if _, switched := d.lines["alert."+part]; switched {
			own = false
		}
	}
	if a.AfterFailures == 0 && !a.Missed && a.Overrun == 0 && !own {
		*a, d.notify = cronrunner.Alert{}, nil
	}
	if d.notify != nil {
		a.Target = d.notify.Receiver()
	}
}

// notifyFaults are those of the webhook of d's alert, by the names that its parts have there.
func notifyFaults(d *draft) []*cronrunner.FieldError {
	if d.notify == nil {
		return nil
	}
	faults := fieldErrors(d.notify.Check())
	for _, fault := range faults {
		if fault.Field = "alert." + strings.TrimPrefix(fault.Field, "webhook."); fault.Field == "alert.url" {
			fault.Field = "alert.webhook"
		}
	}
	return faults
}
