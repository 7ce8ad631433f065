package config

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// maxEntries bounds the entries of lists and mappings that are looked at, those behind aliases each
// time anew. A file of MaxSize without aliases can hardly hold more.
const maxEntries = 1 << 20

// parser collects every fault while it reads. What could not be read is left out, so that one fault
// does not hide another.
type parser struct {
	file    string
	faults  FaultErrors
	entries int
}

// entry is a key of a mapping and its value.
type entry struct {
	key   string
	line  int // of the key
	value *yaml.Node
}

// mapping is the entries of node, in order; none, with a fault, if it is no mapping. A key that comes
// twice is a fault: YAML leaves open which one counts.
func (p *parser) mapping(path string, node *yaml.Node) []entry {
	node = follow(node)
	if node.Kind != yaml.MappingNode {
		hint := ""
		if node.Kind == yaml.SequenceNode && path == "jobs" {
			hint = `; each job begins with its name: "daily_billing:"`
		}
		p.faultf(node.Line, path, "must be a mapping, not %s%s", kind(node), hint)
		return nil
	}
	if !p.affordable(len(node.Content)/2, path, node) {
		return nil
	}
	entries := make([]entry, 0, len(node.Content)/2)
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.ShortTag() == "!!merge":
			p.faultf(key.Line, path, "merge keys (<<) are not supported; put what jobs have in common under defaults")
			continue
		case key.Kind != yaml.ScalarNode:
			p.faultf(key.Line, path, "a key must be text, not %s", kind(key))
			continue
		}
		if before, ok := seen[key.Value]; ok {
			p.faultf(key.Line, join(path, label(key.Value)), "is here a second time; the first is on line %d", before)
			continue
		}
		seen[key.Value] = key.Line
		entries = append(entries, entry{key: key.Value, line: key.Line, value: value})
	}
	return entries
}

// list is the items of node; none, with a fault, if it is no list.
func (p *parser) list(path string, node *yaml.Node, hint string) []*yaml.Node {
	node = follow(node)
	switch {
	case node.Kind != yaml.SequenceNode:
		p.faultf(node.Line, path, "must be a list, not %s%s", kind(node), hint)
		return nil
	case len(node.Content) == 0:
		p.faultf(node.Line, path, "is empty")
		return nil
	case !p.affordable(len(node.Content), path, node):
		return nil
	}
	return node.Content
}

// affordable counts entries against maxEntries.
func (p *parser) affordable(entries int, path string, node *yaml.Node) bool {
	before := p.entries
	if p.entries += entries; p.entries <= maxEntries {
		return true
	}
	if before <= maxEntries {
		p.faultf(node.Line, path, "the file has more than %d entries, with those that aliases repeat", maxEntries)
	}
	return false
}

// text is a scalar as it stands in the file: 0900 is "0900", whatever number YAML sees in it.
func (p *parser) text(path string, node *yaml.Node) (string, bool) {
	node = follow(node)
	switch {
	case isNull(node):
		p.faultf(node.Line, path, `has no value; write "" for an empty text`)
		return "", false
	case node.Kind != yaml.ScalarNode:
		p.faultf(node.Line, path, "must be text, not %s", kind(node))
		return "", false
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}, node.ShortTag()):
		p.faultf(node.Line, path, "the YAML tag %s is not supported", label(node.ShortTag()))
		return "", false
	}
	return node.Value, true
}

// word is a text that must not be empty.
func (p *parser) word(path string, node *yaml.Node) (string, bool) {
	text, ok := p.text(path, node)
	if ok && strings.TrimSpace(text) == "" {
		p.faultf(follow(node).Line, path, "is empty")
		return "", false
	}
	return text, ok
}

// number is a whole number of at least 1; below tells what to do for less.
func (p *parser) number(path string, node *yaml.Node, below string) (int, bool) {
	text, ok := p.text(path, node)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	switch {
	case n > math.MaxInt32: // Atoi's n also when it is out of range
		p.faultf(follow(node).Line, path, "%s is too large; use at most %d", label(text), math.MaxInt32)
		return 0, false
	case err != nil:
		p.faultf(follow(node).Line, path, "%s is not a whole number", label(text))
		return 0, false
	case n < 1:
		p.faultf(follow(node).Line, path, "must be at least 1; %s", below)
		return 0, false
	}
	return n, true
}

// factor is a number of at least 1, which may have a fraction.
func (p *parser) factor(path string, node *yaml.Node) (float64, bool) {
	text, ok := p.text(path, node)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), math.IsNaN(f):
		p.faultf(follow(node).Line, path, "%s is not a number; write one such as 2 or 1.5", label(text))
		return 0, false
	case f < 1:
		p.faultf(follow(node).Line, path, "must be at least 1; with 1, pauses do not grow")
		return 0, false
	}
	return f, true
}

// duration is a length of time, more than nothing. (Nothing is a job's way to say "the default".)
func (p *parser) duration(path string, node *yaml.Node) (time.Duration, bool) {
	d, ok := p.durationOrNone(path, node)
	if ok && d <= 0 {
		p.faultf(follow(node).Line, path, "%s is not positive; leave the field out for its default", follow(node).Value)
		return 0, false
	}
	return d, ok
}

// durationOrNone is a length of time, of any sign.
func (p *parser) durationOrNone(path string, node *yaml.Node) (time.Duration, bool) {
	text, ok := p.text(path, node)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && isNumber(text):
		p.faultf(follow(node).Line, path, "%s has no unit; write %ss, %sm or %sh", text, text, text, text)
		return 0, false
	case err != nil:
		p.faultf(follow(node).Line, path, "%s is not a duration; write one such as 90s, 25m or 1h30m", label(text))
		return 0, false
	}
	return d, true
}

// instant is a point in time, in whole seconds, that is the same everywhere. Of a date alone the hint makes one
// with clock as its time of day.
func (p *parser) instant(path string, node *yaml.Node, clock string) (time.Time, bool) {
	text, ok := p.text(path, node)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	_, notDate := time.Parse(time.DateOnly, text)
	year := t.UTC().Year()
	switch {
	case notDate == nil:
		p.faultf(follow(node).Line, path, "%s has no time of day and no offset; write %[1]sT%[2]sZ or, for instance, %[1]sT%[2]s+08:00", text, clock)
	case err != nil:
		p.faultf(follow(node).Line, path, "%s is not an RFC 3339 time with an offset; write one such as 2026-12-01T%[2]sZ or 2026-12-01T%[2]s+08:00", label(text), clock)
	case t.Nanosecond() != 0:
		p.faultf(follow(node).Line, path, "%s is not in whole seconds", text)
	case year < 1970 || year > 9999: // the zero time would mean none, and JSON ends with the year 9999
		p.faultf(follow(node).Line, path, "%s is outside the years 1970 to 9999", text)
	default:
		return t.UTC(), true
	}
	return time.Time{}, false
}

// flag is true or false.
func (p *parser) flag(path string, node *yaml.Node) (on, ok bool) {
	text, ok := p.text(path, node)
	if ok && text != "true" && text != "false" {
		p.faultf(follow(node).Line, path, "%s is neither true nor false", label(text))
		return false, false
	}
	return text == "true", ok
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

// follow is what node stands for: itself, or what it is an alias of.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias // never an alias itself: YAML has no anchor on one
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// kind names a node for people.
func kind(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "nothing"
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.AliasNode:
		return "an alias"
	}
	switch node.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}

// label is a text of the file in a fault: short, and quoted if it is no plain word.
func label(text string) string {
	text = state.CutHead(text, 64)
	if state.CheckJobName(text) != nil {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// synonyms are what other schedulers call our fields.
var synonyms = map[string]string{
	"cron": "schedule", "spec": "schedule", "tz": "time_zone",
	"cmd": "command", "run": "command", "exec": "command", "args": "command", "script": "shell",
	"env": "environment", "cwd": "dir", "workdir": "dir", "working_dir": "dir",
	"concurrency": "overlap", "misfire": "catch_up",
	"http": "webhook", "request": "webhook", "retries": "retry", "backoff": "retry", "attempts": "max_attempts",
	"uri": "url", "header": "headers", "cacert": "ca",
}

// meant says what an unknown field was probably meant to be, or what there is.
func meant(field string, known []string) string {
	if s, ok := synonyms[strings.ToLower(field)]; ok && slices.Contains(known, s) {
		return "did you mean " + s + "?"
	}
	plain := strings.NewReplacer("_", "", "-", "")
	for _, k := range known {
		if strings.EqualFold(plain.Replace(field), plain.Replace(k)) {
			return "did you mean " + k + "?"
		}
	}
	if c := term.Closest(field, slices.Values(known)); c != "" {
		return "did you mean " + c + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
