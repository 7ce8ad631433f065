package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/internal/executor"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// field reads one field of a job into its draft, and reports whether it could be read.
type field struct {
	read      func(p *parser, d *draft, path string, v *yaml.Node) bool
	inDefault bool
}

// fields are all fields of a job. Those of a mapping within are known as field.part.
var fields = map[string]field{
	"schedule":    {read: readSchedule},
	"start":       {read: readStart},
	"end":         {read: readEnd},
	"max_runs":    {read: readMaxRuns},
	"description": {read: readDescription},
	"labels":      {read: readLabels},

	"command":     {read: readCommand},
	"shell":       {read: readShell},
	"dir":         {read: readDir},
	"environment": {read: readEnvironment},

	"time_zone":      {read: readTimeZone, inDefault: true},
	"jitter":         {read: readJitter, inDefault: true},
	"timeout":        {read: readTimeout, inDefault: true},
	"lock_ttl":       {read: readLockTTL, inDefault: true},
	"grace":          {read: readGrace, inDefault: true},
	"overlap":        {read: readOverlap, inDefault: true},
	"catch_up":       {read: readCatchUp, inDefault: true},
	"recovery":       {read: readRecovery, inDefault: true},
	"max_recoveries": {read: readMaxRecoveries},
}

// notYet are fields that a later version is to have; nobody should look for a typing error.
var notYet = []string{
	"alert", "checkpoint", "history", "limit", "retry", "user", "webhook",
}

func readSchedule(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	v = follow(v)
	if k := kind(v); k == "a number" || v.ShortTag() == "!!timestamp" {
		p.faultf(v.Line, path, `%s is not a schedule; write a cron expression in quotes, such as "0 9 * * *"`, label(v.Value))
		return false
	}
	d.job.Schedule, ok = p.word(path, v)
	return ok
}

func readStart(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Start, ok = p.instant(path, v, "00:00:00")
	return ok
}

func readEnd(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.End, ok = p.instant(path, v, "23:59:59")
	return ok
}

func readMaxRuns(p *parser, d *draft, path string, v *yaml.Node) bool {
	n, ok := p.number(path, v, "for no limit, leave it out")
	d.job.MaxRuns = int64(n)
	return ok
}

func readDescription(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Description, ok = p.text(path, v)
	return ok
}

func readLabels(p *parser, d *draft, path string, v *yaml.Node) bool {
	d.job.Labels = p.texts(path, v, func(_, _ string) error { return nil })
	return true
}

func readTimeZone(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.TimeZone, ok = p.word(path, v)
	return ok
}

// readJitter takes 0s too: so a job has none, whatever the defaults say.
func readJitter(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Jitter, ok = p.durationOrNone(path, v)
	return ok
}

func readTimeout(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Timeout, ok = p.duration(path, v)
	return ok
}

func readLockTTL(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.LockTTL, ok = p.duration(path, v)
	return ok
}

func readGrace(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Grace, ok = p.duration(path, v)
	return ok
}

// readOverlap and readCatchUp keep a limit that was inherited only with the policy that it belongs to.
func readOverlap(p *parser, d *draft, path string, v *yaml.Node) bool {
	was := d.job.Overlap
	d.job.Overlap.Limit = 0
	ok := p.policy(d, "overlap", path, v, (*string)(&d.job.Overlap.Policy), map[string]field{
		"limit": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
			d.job.Overlap.Limit, ok = p.number(path, v, "it is how many runs may wait or, with allow, go on at once")
			return ok
		}},
	})
	if _, own := d.lines["overlap.limit"]; !own && d.job.Overlap.Policy == was.Policy {
		d.job.Overlap.Limit = was.Limit
	}
	return ok
}

func readCatchUp(p *parser, d *draft, path string, v *yaml.Node) bool {
	was := d.job.CatchUp
	d.job.CatchUp.Limit = 0
	ok := p.policy(d, "catch_up", path, v, (*string)(&d.job.CatchUp.Policy), map[string]field{
		"limit": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
			d.job.CatchUp.Limit, ok = p.number(path, v, "for none, write catch_up: none")
			return ok
		}},
		"window": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
			d.job.CatchUp.Window, ok = p.duration(path, v)
			return ok
		}},
	})
	if _, own := d.lines["catch_up.limit"]; !own && d.job.CatchUp.Policy == was.Policy {
		d.job.CatchUp.Limit = was.Limit
	}
	return ok
}

func readRecovery(p *parser, d *draft, path string, v *yaml.Node) bool {
	return p.policy(d, "recovery", path, v, (*string)(&d.job.Recovery.Policy), nil)
}

func readMaxRecoveries(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.job.Recovery.Max, ok = p.number(path, v, "for none, write recovery: fail")
	return ok
}

// policy reads a policy: its name alone, or a mapping with the name as policy beside its parts. Without the
// name, the policy is the inherited one.
func (p *parser) policy(d *draft, name, path string, v *yaml.Node, policy *string, parts map[string]field) bool {
	if follow(v).Kind != yaml.MappingNode {
		text, ok := p.word(path, v)
		*policy = text
		return ok
	}
	ok, named := true, false
	for _, e := range p.mapping(path, v) {
		part := join(path, label(e.key))
		f, known := parts[e.key]
		switch {
		case e.key == "policy":
			text, read := p.word(part, e.value)
			*policy, ok, named = text, ok && read, true
		case known:
			d.lines[name+"."+e.key] = e.line
			d.bad[name+"."+e.key] = !f.read(p, d, part, e.value)
		default:
			p.unknown(e, part, append(sortedKeys(parts), "policy"))
		}
	}
	if !named {
		delete(d.lines, name)
	}
	return ok
}

func readCommand(p *parser, d *draft, path string, v *yaml.Node) bool {
	before := len(p.faults)
	d.command.Argv = nil
	for _, item := range p.list(path, v, `; write ["program", "argument"], or use shell for a line of shell`) {
		text, _ := p.text(path, item)
		d.command.Argv = append(d.command.Argv, text)
	}
	return len(p.faults) == before
}

func readShell(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	if follow(v).Kind == yaml.SequenceNode {
		p.faultf(v.Line, path, "must be text, not a list; use command for a list")
		return false
	}
	d.command.Shell, ok = p.word(path, v)
	return ok
}

func readDir(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.command.Dir, ok = p.word(path, v)
	return ok
}

// readEnvironment has each variable checked by itself, so that a fault has its line.
func readEnvironment(p *parser, d *draft, path string, v *yaml.Node) bool {
	if follow(v).Kind == yaml.SequenceNode {
		p.faultf(v.Line, path, `must be a mapping, not a list; write NAME: "value"`)
		return false
	}
	d.command.Env = p.texts(path, v, func(name, value string) error {
		probe := executor.Command{Argv: []string{"true"}, Env: map[string]string{name: value}}
		for _, fault := range fieldErrors(probe.Check()) {
			return fault.Err
		}
		return nil
	})
	return true
}

// texts reads a mapping of texts; refuse says what is wrong with one, or nil.
func (p *parser) texts(path string, v *yaml.Node, refuse func(key, text string) error) map[string]string {
	texts := make(map[string]string)
	if isNull(follow(v)) {
		return texts // all of it commented out
	}
	for _, e := range p.mapping(path, v) {
		at := join(path, label(e.key))
		text, ok := p.text(at, e.value)
		if !ok {
			continue
		}
		if err := refuse(e.key, text); err != nil {
			p.faultErr(e.line, at, err)
			continue
		}
		texts[e.key] = text
	}
	return texts
}

// maxTarget bounds the command as people see it, in bytes.
const maxTarget = 200

// target is the command for people: never its environment, where the secrets are. A script keeps its lines.
func target(c *executor.Command) string {
	text := strings.TrimSpace(c.Shell)
	if text == "" {
		text = term.CommandLine(c.Argv...)
	}
	return state.CutHead(text, maxTarget)
}
