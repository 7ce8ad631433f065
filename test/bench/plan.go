package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// planned is a scenario, and who is measured in it when nobody is named.
type planned struct {
	scenario    string
	contestants []string
}

// The contestants.
const (
	naive   = "naive"
	gocron  = "gocron"
	robfig  = "robfig"
	ours    = "etcdcron"
	ceiling = "ceiling"
)

// fullPlan is everything. Those that ask etcd once and more for each run are not sent into 10,000 a second.
var fullPlan = []planned{
	{"burst-100", []string{naive, gocron, robfig, ours}},
	{"burst-1000", []string{naive, gocron, robfig, ours}},
	{"burst-5000", []string{naive, gocron, robfig, ours}},
	{"burst-10000", []string{robfig, ours}},
	{"ceiling", []string{ceiling}},
	{"spread-10000", []string{naive, gocron, robfig, ours}},
	{"spread-100000", []string{robfig, ours}},
	{"blocked-1000", []string{ours}},
	{"takeover-10000", []string{ours}},
	{"takeover-100000", []string{ours}},
	{"handover-1000", []string{ours}},
	{"idle-1000", []string{ours}},
}

// quickPlan is a look.
var quickPlan = []planned{
	{"burst-100", fullPlan[0].contestants},
	{"burst-1000", fullPlan[1].contestants},
	{"ceiling", []string{ceiling}},
	{"takeover-1000", []string{ours}},
	{"handover-1000", []string{ours}},
	{"idle-100", []string{ours}},
}

func namesOf(plan []planned) []string {
	names := make([]string, len(plan))
	for i, p := range plan {
		names[i] = p.scenario
	}
	return names
}

// title says for a reader what a contestant is.
func title(contestant string) string {
	return map[string]string{
		naive:   "session + mutex per run",
		gocron:  "gocron v2 + etcd locker",
		robfig:  "robfig/cron, no etcd",
		ours:    "etcdcron",
		ceiling: "etcd's ceiling",
	}[contestant]
}

func contestantNames() []string { return []string{naive, gocron, robfig, ours, ceiling} }

// scenario is what is asked of a contestant.
type scenario struct {
	kind string
	jobs int
}

func parseScenario(name string) (scenario, error) {
	kind, number, _ := strings.Cut(name, "-")
	if kind == ceiling {
		return scenario{kind: kind, jobs: ceilingJobs}, nil
	}
	jobs, err := strconv.Atoi(number)
	if err != nil || jobs < 1 || jobs > maxJobs || measures[kind] == nil {
		return scenario{}, fmt.Errorf("%q is not a scenario; bench -h lists them", name)
	}
	return scenario{kind: kind, jobs: jobs}, nil
}

// maxJobs is what the names have digits for.
const maxJobs = 999_999

// measure makes a measurement and writes it into the result.
type measure func(ctx context.Context, b *bed, into *result) error

var measures = map[string]measure{
	"burst":    measureLoad,
	"spread":   measureLoad,
	"blocked":  measureLoad,
	"takeover": measureTakeover,
	"handover": measureHandover,
	"idle":     measureIdle,
	ceiling:    measureCeiling,
}

// contestantsFor is who is measured in a scenario: those who were named, or else those of the plan, or all.
func contestantsFor(name string, named []string) ([]string, error) {
	s, err := parseScenario(name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(fullPlan, func(p planned) bool { return p.scenario == name }); i >= 0 {
		return only(fullPlan[i].contestants, named)
	}
	switch s.kind {
	case "burst", "spread":
		return only([]string{naive, gocron, robfig, ours}, named)
	default:
		return only([]string{ours}, named)
	}
}

// only keeps those that were named, or all when nobody was. Who was named takes part even where the plan spares him,
// if he can.
func only(all, named []string) ([]string, error) {
	if len(named) == 0 {
		return all, nil
	}
	for _, name := range named {
		if !slices.Contains(contestantNames(), name) {
			return nil, fmt.Errorf("%q is not a contestant; bench -h lists them", name)
		}
	}
	if len(all) > 1 { // a load, which anybody can be put under
		return slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name == ceiling }), nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(named, name) }), nil
}

// schedule is when the i-th job is due.
func (s scenario) schedule(i int) string {
	switch s.kind {
	case "spread", "takeover":
		return strconv.Itoa(i%60) + " * * * * *"
	case "idle":
		return "0 0 0 1 1 *" // nobody measures on New Year's Eve
	default:
		return "* * * * * *"
	}
}

// expected is how many runs are due in so many seconds.
func (s scenario) expected(from time.Time, seconds int) int {
	if s.kind != "spread" && s.kind != "takeover" {
		return s.jobs * seconds
	}
	n := 0
	for i := range seconds {
		second := from.Add(time.Duration(i) * time.Second).Second()
		n += s.jobs / 60
		if second < s.jobs%60 {
			n++
		}
	}
	return n
}

// jobName is the i-th job's name. All have the same length.
func jobName(i int) string { return fmt.Sprintf("job-%06d", i) }

// jobIndex is the inverse of jobName; -1 for other names.
func jobIndex(name string) int {
	digits, ok := strings.CutPrefix(name, "job-")
	i, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return i
}

var errNotHere = errors.New("this contestant has no part in this scenario")
