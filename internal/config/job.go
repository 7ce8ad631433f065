package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/executor"
)

// draft is a job, or the defaults of all, while it is read.
type draft struct {
	path    string // what its faults begin with
	line    int    // of its name
	job     cronrunner.Job
	command executor.Command
	webhook *executor.Webhook // nil without the field
	notify  *executor.Webhook // that the alert is told to; nil for none
	lines   map[string]int    // where each field that it has stands
	bad     map[string]bool   // the fields with a fault
}

// defaults reads what holds for every job that does not say otherwise.
func (p *parser) defaults(e entry) *draft {
	d := &draft{path: "defaults", line: e.line}
	p.fields(d, e.value, func(f field) bool { return f.inDefault }, "stands with each job, not in the defaults")
	d.job.Name, d.job.Schedule = "defaults", "@daily" // the rest is checked as if it were a job
	p.check(d, nil)
	d.job.Name, d.job.Schedule = "", ""
	return d
}

// job reads one job. The result counts only if there is no fault in the file.
func (p *parser) job(e entry, defaults *draft) JobSpec {
	d := &draft{path: label(e.key), line: e.line, job: defaults.job, notify: defaults.notify}
	d.job.Name = e.key
	sound := p.fields(d, e.value, func(field) bool { return true }, "")
	p.required(d, sound)
	if _, own := d.lines["time_zone"]; !own && namesZone(d.job.Schedule) {
		d.job.TimeZone = "" // what the job says counts before the default
	}
	d.job.Target = target(d)
	d.settleAlert()
	p.check(d, defaults)
	return JobSpec{Job: d.job, Command: d.command, Webhook: d.webhook, Notify: d.notify, Line: d.line}
}

// namesZone reports whether a schedule has its zone in itself.
func namesZone(schedule string) bool {
	return strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=")
}

// fields reads the fields of node into d, of those that are allowed. It reports whether node is a mapping
// as it should be, so that what is not there is missing.
func (p *parser) fields(d *draft, node *yaml.Node, allowed func(field) bool, why string) bool {
	d.lines, d.bad = make(map[string]int), make(map[string]bool)
	known := slices.DeleteFunc(sortedKeys(fields), func(name string) bool { return !allowed(fields[name]) })
	before := len(p.faults)
	entries := p.mapping(d.path, node)
	sound := len(p.faults) == before
	for _, e := range entries {
		path := join(d.path, label(e.key))
		f, ok := fields[e.key]
		switch {
		case ok && allowed(f):
			d.lines[e.key] = e.line
			d.bad[e.key] = !f.read(p, d, path, e.value)
		case ok:
			p.faultf(e.line, path, "%s", why)
		default:
			p.unknown(e, path, known)
		}
	}
	return sound
}

func (p *parser) unknown(e entry, path string, known []string) {
	if slices.Contains(notYet, e.key) {
		p.faultf(e.line, path, "is not supported yet")
		return
	}
	p.faultf(e.line, path, "unknown field; %s", meant(e.key, known))
}

// required notes that d has no schedule. (The other checks would take it for an empty one.) If the fields
// were not sound, nobody knows what is missing.
func (p *parser) required(d *draft, sound bool) {
	_, schedule := d.lines["schedule"]
	if !schedule && sound {
		p.faultf(d.line, d.path+".schedule", "is missing")
	}
	d.bad["schedule"] = d.bad["schedule"] || !schedule
	d.bad["command"] = d.bad["command"] || d.bad["shell"] || !sound
}

// check notes everything that the scheduler would refuse, with the line of the field that has it. Faults
// of the defaults are told once, where the defaults stand.
func (p *parser) check(d *draft, defaults *draft) {
	var faults []*cronrunner.FieldError
	if err := zoneFault(d.job.TimeZone); err != nil {
		faults = append(faults, &cronrunner.FieldError{Field: "time_zone", Err: err})
		d.job.TimeZone = "" // so that the schedule is looked at by itself
	}
	faults = append(faults, fieldErrors(d.job.Check())...)
	faults = append(faults, notifyFaults(d)...)
	switch {
	case d.webhook != nil:
		faults = append(faults, besides(d)...)
		faults = append(faults, fieldErrors(d.webhook.Check())...)
	case defaults != nil:
		faults = append(faults, fieldErrors(d.command.Check())...)
	}
	told := maps.Clone(d.bad)
	for _, fault := range faults {
		whole, _, _ := strings.Cut(fault.Field, ".")
		if !told[fault.Field] && !told[whole] {
			p.checked(d, defaults, fault)
		}
	}
}

// besides are the fields that stand beside a webhook and have no meaning there.
func besides(d *draft) (faults []*cronrunner.FieldError) {
	fault := func(name, why string) {
		if _, there := d.lines[name]; there {
			faults = append(faults, &cronrunner.FieldError{Field: name, Err: errors.New(why)})
		}
	}
	for _, name := range []string{"command", "shell"} {
		fault(name, "both "+name+" and webhook are set; use one of them")
	}
	for _, name := range ofCommands {
		fault(name, "is for commands; a webhook has none")
	}
	return faults
}

// zoneFault is what is wrong with a zone alone.
func zoneFault(zone string) error {
	_, err := cronrunner.ParseSchedule("@daily", zone)
	if inner := errors.Unwrap(err); inner != nil {
		return inner // without the schedule, which is not the job's
	}
	return err
}

// checked notes one fault.
func (p *parser) checked(d *draft, defaults *draft, fault *cronrunner.FieldError) {
	line, ours := d.lines[fault.Field]
	if !ours && defaults != nil && defaults.bad[fault.Field] {
		return
	}
	if whole, _, isPart := strings.Cut(fault.Field, "."); isPart && !ours {
		line, ours = d.lines[whole]
	}
	path := d.path + "." + fault.Field
	switch {
	case fault.Field == "name":
		line, path = d.line, d.path
	case !ours:
		line = d.line
	}
	d.bad[fault.Field] = true
	p.faultErr(line, path, withOrigin(d, defaults, fault))
}

// contradictory are the fields of which each can be right by itself and not beside the other. A fault of the
// first then names the other.
var contradictory = map[string]string{
	"catch_up": "overlap", "lock_ttl": "grace", "checkpoint": "overlap", "retry.max": "retry.initial",
}

// withOrigin is a fault with where one of its two fields comes from, if the job does not show it.
func withOrigin(d, defaults *draft, fault *cronrunner.FieldError) error {
	if defaults == nil {
		return fault.Err
	}
	other := contradictory[fault.Field]
	for _, name := range []string{fault.Field, other} {
		_, own := d.lines[name]
		line, inherited := defaults.lines[name]
		if inherited && !own && (name != other || strings.Contains(fault.Err.Error(), strings.TrimPrefix(other, "retry."))) {
			return fmt.Errorf("%w (%s is from the defaults, on line %d; the job can have its own)", fault.Err, name, line)
		}
	}
	return fault.Err
}

// fieldErrors are the FieldErrors in err, each by itself.
func fieldErrors(err error) (found []*cronrunner.FieldError) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil:
	case *cronrunner.FieldError:
		found = append(found, e)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			found = append(found, fieldErrors(part)...)
		}
	case interface{ Unwrap() error }:
		found = fieldErrors(e.Unwrap())
	}
	return found
}
