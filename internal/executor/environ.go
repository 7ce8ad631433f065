package executor

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	ownPrefix  = "ETCDCRON_"
	argPrefix  = ownPrefix + "ARG_"
	etcdPrefix = "ETCDCTL_"

	// SocketVariable has the path of the unix socket on which a command reports. It is not set when there is
	// none.
	SocketVariable = ownPrefix + "SOCKET"
	// CheckpointVariable has the checkpoint that a command goes on from. It is not set when there is none.
	CheckpointVariable = ownPrefix + "CHECKPOINT"
)

// runInfo is what a command is told of its run.
type runInfo struct {
	job, id, trigger string
	scheduledAt      time.Time
	attempt          int
	fencingToken     int64
	args             map[string]string
}

func infoOf(run attempt) runInfo {
	return runInfo{
		job: run.Job(), id: run.ID(), trigger: string(run.Trigger()),
		scheduledAt: run.ScheduledAt(), attempt: run.Attempt(), fencingToken: run.FencingToken(), args: run.Args(),
	}
}

func (r runInfo) variables() []string {
	variables := []string{
		ownPrefix + "JOB=" + r.job,
		ownPrefix + "RUN_ID=" + r.id,
		ownPrefix + "SCHEDULED_AT=" + r.scheduledAt.UTC().Format(time.RFC3339),
		ownPrefix + "ATTEMPT=" + strconv.Itoa(r.attempt),
		ownPrefix + "FENCING_TOKEN=" + strconv.FormatInt(r.fencingToken, 10),
		ownPrefix + "TRIGGER=" + r.trigger,
	}
	for _, name := range slices.Sorted(maps.Keys(r.args)) {
		if isArgName(name) {
			variables = append(variables, argPrefix+name+"="+r.args[name])
		}
	}
	return variables
}

// badArgs are the names of arguments that no variable is made of, since a name with "=", for one, would be
// another variable's.
func (r runInfo) badArgs() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.args)), isArgName)
}

// isArgName tells the names that a shell can use in a variable's: ASCII letters, digits and "_".
func isArgName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// environ is the command's whole environment. Later entries win over earlier ones of the same name, so
// the run's own variables come last. id is whom it runs as; nil for the scheduler's user.
func (c Command) environ(inherited []string, id *identity, run runInfo) []string {
	env := make([]string, 0, len(inherited)+len(c.Env)+12)
	for _, v := range inherited {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(v, ownPrefix) || strings.HasPrefix(v, etcdPrefix) || id != nil && slices.Contains(homeVariables, name) {
			continue
		}
		env = append(env, v)
	}
	if id != nil {
		env = append(env, id.variables()...)
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
