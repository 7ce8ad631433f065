package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What of etcd is worth a word.
const (
	fullWarning   = 0.80 // share of the quota
	fullProblem   = 0.95
	defaultQuota  = 2 << 30   // bytes; of an etcd that does not tell
	worthDefrag   = 100 << 20 // bytes that a defragmentation would give back, and more than half of the database
	slowRead      = 100 * time.Millisecond
	slowWrite     = 200 * time.Millisecond
	tooSlow       = time.Second // the least leader TTL is 2 s
	latencyRounds = 5
)

// members looks at each endpoint.
func (e *examination) members(ctx context.Context) {
	versions := map[string]bool{}
	denied := 0
	for _, endpoint := range e.Client.Endpoints() {
		call, cancel := e.call(ctx)
		s, err := e.Client.Status(call, endpoint)
		cancel()
		switch {
		case errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied):
			denied++
			continue
		case err != nil:
			e.sayf(Problem, "etcd", "look at it with: etcdctl endpoint health --endpoints "+endpoint, "%s does not answer", endpoint)
			continue
		}
		versions[s.Version] = true
		e.member(endpoint, s)
	}
	if denied > 0 {
		e.blind("etcd", "the state of etcd's members", rpctypes.ErrPermissionDenied)
	}
	if len(versions) > 1 {
		e.sayf(Warning, "etcd", "finish the upgrade", "the endpoints have %d versions of etcd", len(versions))
	}
}

// member looks at what one endpoint says of itself.
func (e *examination) member(endpoint string, s *clientv3.StatusResponse) {
	role := "follows"
	switch {
	case s.Leader == 0:
		role = "has no leader"
	case s.Leader == s.Header.MemberId:
		role = "leads"
	case s.IsLearner:
		role = "is a learner"
	}
	quota, assumed := s.DbSizeQuota, ""
	if quota <= 0 {
		quota, assumed = defaultQuota, " (etcd's default: it does not say)"
	}
	text := fmt.Sprintf("%s: etcd %s, %s; database %s of %s%s", endpoint, s.Version, role, size(s.DbSize), size(quota), assumed)
	full := float64(s.DbSize) / float64(quota)
	spare := s.DbSize - s.DbSizeInUse
	defrag := "etcdctl defrag --endpoints " + endpoint + ", one member after the other"
	switch {
	case s.Leader == 0:
		e.sayf(Problem, "etcd", "its cluster has lost its majority; bring members back", "%s", text)
	case full >= fullProblem:
		e.sayf(Problem, "etcd", "compact it, then "+defrag+"; or raise --quota-backend-bytes", "%s: it takes no writes once that is full", text)
	case full >= fullWarning:
		e.sayf(Warning, "etcd", "compact it, then "+defrag+"; or raise --quota-backend-bytes", "%s: it takes no writes once that is full", text)
	case spare > worthDefrag && spare > s.DbSizeInUse:
		e.sayf(Warning, "etcd", defrag, "%s, of which only %s is in use", text, size(s.DbSizeInUse))
	default:
		e.sayf(OK, "etcd", "", "%s", text)
	}
}

// alarms looks for what etcd itself complains of.
func (e *examination) alarms(ctx context.Context) {
	call, cancel := e.call(ctx)
	defer cancel()
	resp, err := e.Client.AlarmList(call)
	if err != nil {
		e.blind("alarms", "etcd's alarms", err)
		return
	}
	for _, a := range resp.Alarms {
		switch a.Alarm {
		case etcdserverpb.AlarmType_NOSPACE:
			e.sayf(Problem, "alarms", "compact and defragment etcd, then: etcdctl alarm disarm", "etcd is out of space and takes no writes: nothing is run")
		case etcdserverpb.AlarmType_CORRUPT:
			e.sayf(Problem, "alarms", "replace the member, or restore the cluster from a snapshot", "member %x of etcd has found its data corrupt", a.MemberID)
		default:
			e.sayf(Problem, "alarms", "etcdctl alarm list", "member %x of etcd has the alarm %s", a.MemberID, a.Alarm)
		}
	}
	if len(resp.Alarms) == 0 {
		e.sayf(OK, "alarms", "", "etcd has none")
	}
}

// latency measures reads that etcd's majority confirms, and one write.
func (e *examination) latency(ctx context.Context) {
	var took []time.Duration
	for range latencyRounds {
		d, err := e.timed(ctx, func(ctx context.Context) error {
			_, err := e.Client.Get(ctx, e.Store.Keys().Probe(), clientv3.WithCountOnly())
			return err
		})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
			e.denied("read", "nothing can be looked at")
			return
		}
		if err != nil {
			e.sayf(Problem, "latency", "look at etcd with: etcdctl endpoint status --cluster", "etcd does not answer a read: %v", err)
			return
		}
		took = append(took, d)
	}
	slices.Sort(took)
	median := took[len(took)/2]
	e.speed("a read", median, slowRead)

	write, err := e.timed(ctx, func(ctx context.Context) error {
		_, err := e.Client.Put(ctx, e.Store.Keys().Probe(), e.Now().UTC().Format(time.RFC3339))
		return err
	})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied):
		e.denied("write", "jobs can be looked at, and not steered")
		return
	case err != nil:
		e.sayf(Problem, "latency", "look at etcd with: etcdctl endpoint status --cluster", "etcd does not take a write: %v", err)
		return
	}
	e.speed("a write", write, slowWrite)
	if _, err = e.timed(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := e.Client.Delete(ctx, e.Store.Keys().Probe())
		return err
	}); err != nil {
		e.sayf(Warning, "permissions", "etcdctl del "+e.Store.Keys().Probe(), "the key that was written to try it could not be deleted: %v", err)
		return
	}
	e.sayf(OK, "permissions", "", "the user may read and write under %s", e.Root)
}

func (e *examination) timed(ctx context.Context, call func(context.Context) error) (time.Duration, error) {
	ctx, cancel := e.call(ctx)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	return time.Since(began), err
}

func (e *examination) speed(what string, took, slow time.Duration) {
	const hint = "look at etcd's disk and network: etcd_disk_wal_fsync_duration_seconds, etcd_network_peer_round_trip_time_seconds"
	text := took.Round(10 * time.Microsecond).String()
	switch {
	case took >= tooSlow:
		e.sayf(Problem, "latency", hint, "%s takes %s: leases run out while they are renewed", what, text)
	case took >= slow:
		e.sayf(Warning, "latency", hint, "%s takes %s: runs start late", what, text)
	default:
		e.sayf(OK, "latency", "", "%s takes %s", what, text)
	}
}

func (e *examination) denied(verb, means string) {
	level := Problem
	if verb == "write" {
		level = Warning
	}
	e.sayf(level, "permissions", "etcdctl role grant-permission ROLE readwrite --prefix=true "+e.Root, "the user may not %s under %s: %s", verb, e.Root, means)
}

// size is a number of bytes at a glance.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	text := fmt.Sprintf("%.1f", value)
	return strings.TrimSuffix(text, ".0") + " " + units[unit]
}
