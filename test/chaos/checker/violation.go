package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Violation is something that must not be.
type Violation struct {
	Rule   string   `json:"rule"` // I1 to I6
	Job    string   `json:"job,omitempty"`
	Run    string   `json:"run,omitempty"`
	Text   string   `json:"text"`
	Mono   int64    `json:"mono,omitempty"`   // when; 0 for what stands at the end
	Around []string `json:"around,omitempty"` // the events and faults around it
}

func (v Violation) String() string {
	where := v.Job
	if v.Run != "" {
		where += "/" + v.Run
	}
	return fmt.Sprintf("%s: %s: %s", v.Rule, where, v.Text)
}

// Describe is the violation with what happened around it.
func (v Violation) Describe() string {
	return strings.Join(append([]string{v.String()}, v.Around...), "\n    ")
}

const (
	aroundTime  = 4 * time.Second
	aroundLines = 40
)

// around are the events of the violation's job, and the faults, near it: those of its run first, if there are too many.
func (c *check) around(v Violation) []string {
	at := v.Mono
	if at == 0 {
		for _, e := range c.Events {
			if e.Job == v.Job && v.Run != "" && e.Run == v.Run {
				at = e.Mono // the last of the run
			}
		}
	}
	if at == 0 {
		return nil
	}
	type line struct {
		mono int64
		text string
	}
	var lines []line
	near := func(mono int64) bool { return mono > at-int64(aroundTime) && mono < at+int64(aroundTime) }
	for _, f := range c.Faults {
		if f.From < at+int64(aroundTime) && f.To > at-2*int64(aroundTime) {
			lines = append(lines, line{f.From, fmt.Sprintf("fault %s %s%s %s, for %s", f.Kind, f.Instance, f.Job, f.Note, time.Duration(f.To-f.From))})
		}
	}
	for _, e := range c.Events {
		if (e.Job == v.Job || e.Kind == Stall) && e.Kind != Beat && near(e.Mono) {
			lines = append(lines, line{e.Mono, e.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.mono, b.mono) })
	if len(lines) > aroundLines {
		middle, _ := slices.BinarySearchFunc(lines, at, func(l line, at int64) int { return cmp.Compare(l.mono, at) })
		first := min(max(middle-aroundLines/2, 0), len(lines)-aroundLines)
		lines = lines[first : first+aroundLines]
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = fmt.Sprintf("%+9.3fs %s", time.Duration(l.mono-at).Seconds(), l.text)
	}
	return texts
}

func (e Event) String() string {
	s := string(e.Kind)
	if e.Kind == Stall {
		return fmt.Sprintf("stall %s for %s", e.Instance, time.Duration(e.Mono-e.Called))
	}
	s += fmt.Sprintf(" %s/%s attempt %d token %d on %s", e.Job, e.Run, e.Attempt, e.Token, e.Instance)
	switch e.Kind { //nolint:exhaustive // the others say nothing more
	case Start, Asking, Saved:
		s += fmt.Sprintf(", checkpoint %d", e.Value)
	case Write:
		s += fmt.Sprintf(", accepted %t", e.Accepted)
	case End:
		s += ", " + e.Outcome
	}
	return s
}
