package state

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Defaults of the root under which everything is kept: /etcdcron/default/.
const (
	DefaultPrefix    = "/etcdcron"
	DefaultNamespace = "default"
)

// MaxJobName is the greatest length of a job's name, in bytes.
const MaxJobName = 128

var (
	segment = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	badChar = regexp.MustCompile(`[^A-Za-z0-9._-]`)
)

// Keys builds and parses the keys of one namespace. Nothing else does. The zero value is not usable.
type Keys struct{ root string }

// NewKeys returns the keys under /<prefix>/<namespace>/. Empty strings mean the defaults.
func NewKeys(prefix, namespace string) (Keys, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if namespace == "" {
		namespace = DefaultNamespace
	}
	for part := range strings.SplitSeq(strings.Trim(prefix, "/"), "/") {
		if !segment.MatchString(part) {
			return Keys{}, fmt.Errorf("prefix %q: %q is not a path segment of letters, digits, '.', '_' and '-'; try %q",
				prefix, part, DefaultPrefix)
		}
	}
	if !segment.MatchString(namespace) {
		return Keys{}, fmt.Errorf("namespace %q: use letters, digits, '.', '_' and '-'; try %q", namespace, DefaultNamespace)
	}
	return Keys{root: "/" + strings.Trim(prefix, "/") + "/" + namespace + "/"}, nil
}

// CheckJobName says why name cannot be a job's name, or nil. One rule for every way in: names are part
// of keys, URLs and file names, so they are 1 to 128 letters, digits, '.', '_' and '-', and begin with
// a letter or digit.
func CheckJobName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrBadName)
	case len(name) > MaxJobName:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are allowed", ErrBadName, len(name), MaxJobName)
	case segment.MatchString(name):
		return nil
	}
	hint := strings.TrimLeft(badChar.ReplaceAllString(name, "_"), "._-")
	if hint == "" {
		hint = "my_job"
	}
	return fmt.Errorf("%w: %q may have only letters, digits, '.', '_' and '-', and begin with a letter or digit; try %q",
		ErrBadName, name, hint)
}

// Root is the prefix of everything: /<prefix>/<namespace>/.
func (k Keys) Root() string { return k.root }

// Election is the election's name. concurrency.Election puts its keys at <name>/<lease>.
func (k Keys) Election() string { return k.root + "leader" }

// Candidates is the prefix of the election's keys; the one created first leads.
func (k Keys) Candidates() string { return k.root + "leader/" }

// Instances is the prefix of the instances' keys.
func (k Keys) Instances() string { return k.root + "instances/" }

// Instance is where an instance says that it is there.
func (k Keys) Instance(id string) string { return k.Instances() + id }

// Sentinel is a key attached to a lease and nothing else, so that its holder hears at once when the
// lease is revoked.
func (k Keys) Sentinel(id clientv3.LeaseID) string { return k.root + "leases/" + leaseName(id) }

// Probe is a key that nothing reads, to see whether writes work and how long they take.
func (k Keys) Probe() string { return k.root + "probe" }

// The keys of a run are built in one piece each: on a busy leader that is done often enough to be seen in a profile.

// Spec is where a job's definition stands.
func (k Keys) Spec(job string) string { return k.root + "jobs/" + job + "/spec" }

// Runs is the prefix of a job's run records.
func (k Keys) Runs(job string) string { return k.root + "jobs/" + job + "/runs/" }

// Run is where the record of a run stands.
func (k Keys) Run(job, id string) string { return k.root + "jobs/" + job + "/runs/" + id }

// Progress is where a run's owner says how far it is.
func (k Keys) Progress(job, run string) string { return k.root + "jobs/" + job + "/progress/" + run }

// Checkpoint is where a run's owner keeps its checkpoint.
func (k Keys) Checkpoint(job, run string) string {
	return k.root + "jobs/" + job + "/checkpoints/" + run
}

// JobCheckpoint is where the checkpoint stands of a job that carries it on from run to run.
func (k Keys) JobCheckpoint(job string) string { return k.root + "jobs/" + job + "/checkpoint" }

// Statuses is the prefix of all jobs' status keys: one per job, so listing it lists the jobs.
func (k Keys) Statuses() string { return k.root + "status/" }

// Status is where a job's status stands.
func (k Keys) Status(job string) string { return k.root + "status/" + job }

// Locks is the prefix of all locks.
func (k Keys) Locks() string { return k.root + "locks/" }

// Lock is the lock of a job that has one run at a time.
func (k Keys) Lock(job string) string { return k.root + "locks/" + job }

// SharedLock is the lock of one run of a job that may have several at a time.
func (k Keys) SharedLock(job, run string) string { return k.root + "locks/" + job + "/" + run }

// Controls is the prefix of all jobs' controls.
func (k Keys) Controls() string { return k.root + "controls/" }

// Control is where a job is paused.
func (k Keys) Control(job string) string { return k.root + "controls/" + job }

// Requests is the prefix of all that people have asked for and that was not acted on yet.
func (k Keys) Requests() string { return k.root + "requests/" }

// Request is where a request stands that a leader acts on.
func (k Keys) Request(id string) string { return k.Requests() + id }

// Cancels is the prefix of the requests to cancel a run.
func (k Keys) Cancels() string { return k.Requests() + "cancel/" }

// Cancel is the request to cancel a run. There is one for each run, so whatever ends the run can delete it
// without having heard of it.
func (k Keys) Cancel(job, run string) string { return k.Cancels() + job + "/" + run }

// Resign is the request to end a term of that revision.
func (k Keys) Resign(term int64) string {
	return k.Requests() + "resign/" + strconv.FormatInt(term, 10)
}

// CanceledAt is the run that the request at key wants canceled, as job/run.
func (k Keys) CanceledAt(key string) string { return strings.TrimPrefix(key, k.Cancels()) }

// JobOfStatus is the job whose status stands at key.
func (k Keys) JobOfStatus(key string) string { return strings.TrimPrefix(key, k.Statuses()) }

// JobOfLock is the job whose lock, or one of whose locks, stands at key.
func (k Keys) JobOfLock(key string) string {
	job, _, _ := strings.Cut(strings.TrimPrefix(key, k.Locks()), "/")
	return job
}

// JobOfControl is the job whose control stands at key.
func (k Keys) JobOfControl(key string) string { return strings.TrimPrefix(key, k.Controls()) }
