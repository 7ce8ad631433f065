package config

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
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

	"command": {read: readCommand},
	"shell":   {read: readShell},
	"webhook": {read: readWebhook},

	"dir":                  {read: readDir},
	"environment":          {read: readEnvironment},
	"user":                 {read: readUser},
	"permanent_exit_codes": {read: readPermanentExitCodes},

	"time_zone":      {read: readTimeZone, inDefault: true},
	"jitter":         {read: readJitter, inDefault: true},
	"timeout":        {read: readTimeout, inDefault: true},
	"lock_ttl":       {read: readLockTTL, inDefault: true},
	"grace":          {read: readGrace, inDefault: true},
	"overlap":        {read: readOverlap, inDefault: true},
	"catch_up":       {read: readCatchUp, inDefault: true},
	"recovery":       {read: readRecovery, inDefault: true},
	"max_recoveries": {read: readMaxRecoveries},
	"retry":          {read: readRetry, inDefault: true},
	"checkpoint":     {read: readCheckpoint, inDefault: true},
	"alert":          {read: readAlert, inDefault: true},
}

// ofCommands are the fields that a webhook does not have.
var ofCommands = []string{"dir", "environment", "user", "permanent_exit_codes"}

// notYet are fields that a later version is to have; nobody should look for a typing error.
var notYet = []string{
	"history", "limit",
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

// readRetry keeps what was inherited and is not said anew; but for a single attempt, which has no pauses.
func readRetry(p *parser, d *draft, path string, v *yaml.Node) bool {
	if follow(v).Kind != yaml.MappingNode {
		p.faultf(follow(v).Line, path, "must be a mapping, not %s; write {max_attempts: 3}", kind(follow(v)))
		return false
	}
	inherited := d.job.Retry
	d.job.Retry = cronrunner.Retry{}
	ok := p.parts(d, "retry", path, v, retryParts)
	own := d.job.Retry
	if own.MaxAttempts != 1 {
		d.job.Retry = cronrunner.Retry{
			MaxAttempts: cmp.Or(own.MaxAttempts, inherited.MaxAttempts), Initial: cmp.Or(own.Initial, inherited.Initial),
			Max: cmp.Or(own.Max, inherited.Max), Multiplier: cmp.Or(own.Multiplier, inherited.Multiplier),
		}
	}
	return ok
}

var retryParts = map[string]field{
	"max_attempts": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Retry.MaxAttempts, ok = p.number(path, v, "1 is no retry")
		return ok
	}},
	"initial": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Retry.Initial, ok = p.duration(path, v)
		return ok
	}},
	"max": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Retry.Max, ok = p.duration(path, v)
		return ok
	}},
	"multiplier": {read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		d.job.Retry.Multiplier, ok = p.factor(path, v)
		return ok
	}},
}

func readCheckpoint(p *parser, d *draft, path string, v *yaml.Node) bool {
	text, ok := p.word(path, v)
	d.job.Checkpoint = state.Scope(text)
	return ok
}

// parts reads a mapping that is a field of its own, part by part; the parts are known as name.part.
func (p *parser) parts(d *draft, name, path string, v *yaml.Node, parts map[string]field) bool {
	before := len(p.faults)
	entries := p.mapping(path, v)
	sound := len(p.faults) == before
	for _, e := range entries {
		part := join(path, label(e.key))
		f, known := parts[e.key]
		if !known {
			p.unknown(e, part, sortedKeys(parts))
			continue
		}
		d.lines[name+"."+e.key] = e.line
		d.bad[name+"."+e.key] = !f.read(p, d, part, e.value)
	}
	return sound
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

func readUser(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.command.User, ok = p.word(path, v)
	return ok
}

func readPermanentExitCodes(p *parser, d *draft, path string, v *yaml.Node) bool {
	before := len(p.faults)
	d.command.PermanentExitCodes = nil
	for _, item := range p.list(path, v, "; write [2, 64]") {
		code, ok := p.number(path, item, "0 is success")
		if ok && code > 255 {
			p.faultf(follow(item).Line, path, "%d is not between 1 and 255", code)
		}
		d.command.PermanentExitCodes = append(d.command.PermanentExitCodes, code)
	}
	return len(p.faults) == before
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

// target is what a job runs, for people: never the environment, headers or a query, where the secrets are. A
// script keeps its lines.
func target(d *draft) string {
	text := strings.TrimSpace(d.command.Shell)
	switch {
	case d.webhook != nil:
		text = d.webhook.Target()
	case text == "":
		text = term.CommandLine(d.command.Argv...)
	}
	return state.CutHead(text, maxTarget)
}
