package executor

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	ownPrefix  = "ETCDCRON_"
	etcdPrefix = "ETCDCTL_"
)

// runInfo is what a command is told of its run.
type runInfo struct {
	job, id, trigger string
	scheduledAt      time.Time
	attempt          int
	fencingToken     int64
}

func (r runInfo) variables() []string {
	return []string{
		ownPrefix + "JOB=" + r.job,
		ownPrefix + "RUN_ID=" + r.id,
		ownPrefix + "SCHEDULED_AT=" + r.scheduledAt.UTC().Format(time.RFC3339),
		ownPrefix + "ATTEMPT=" + strconv.Itoa(r.attempt),
		ownPrefix + "FENCING_TOKEN=" + strconv.FormatInt(r.fencingToken, 10),
		ownPrefix + "TRIGGER=" + r.trigger,
	}
}

// environ is the command's whole environment. Later entries win over earlier ones of the same name, so
// the run's own variables come last.
func (c Command) environ(inherited []string, run runInfo) []string {
	env := make([]string, 0, len(inherited)+len(c.Env)+8)
	for _, v := range inherited {
		if !strings.HasPrefix(v, ownPrefix) && !strings.HasPrefix(v, etcdPrefix) {
			env = append(env, v)
		}
	}
	if c.Dir != "" {
		env = append(env, "PWD="+c.Dir)
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	return append(env, run.variables()...)
}

// variable is the value that a process with env sees under name.
func variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
