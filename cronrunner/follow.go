package cronrunner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/leader"
)

// settleTime is how long a new leader is given to write the specs of its jobs before ours are compared
// with them.
const settleTime = 5 * time.Second

// follow says whom this instance follows, and whether the leader's jobs are other than its own. Only the
// leader's jobs run, so a job that only a follower has never does, and nothing else would tell.
func (s *Scheduler) follow(ctx context.Context) {
	var comparisons sync.WaitGroup
	defer comparisons.Wait()
	abandon := func() {}
	defer func() { abandon() }()
	for info, err := range s.elector.Observe(ctx) {
		abandon() // of an earlier leader
		switch {
		case errors.Is(err, leader.ErrNoLeader):
			s.log.Debug("nobody leads")
		case err != nil, info.Instance == s.self.ID, info.ElectedAt.IsZero():
		default:
			s.log.Info("following", zap.String("leader", info.Instance), zap.Int64("term", info.Term))
			soon, cancel := context.WithCancel(ctx)
			abandon = cancel
			comparisons.Go(func() { s.compareSoon(soon, info.Instance) })
		}
	}
}

// compareSoon compares our jobs with the leader's once it has settled, unless ctx ends before. If etcd does not answer
// it tries again, since nothing else would tell.
func (s *Scheduler) compareSoon(ctx context.Context, leader string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(settleTime + rand.N(settleTime/5)):
		}
		missing, different, err := s.compare(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.retrying("read", err)
			continue
		case len(missing)+len(different) > 0:
			s.log.Warn("the leader has other jobs than this instance: what only this one has does not run, what differs runs as the leader has it",
				zap.String("leader", leader), zap.Strings("only_here", missing), zap.Strings("different", different))
		}
		return
	}
}

// compare names our jobs that the leader does not have, and those that it has in another form.
func (s *Scheduler) compare(ctx context.Context) (missing, different []string, err error) {
	jobs, _ := s.snapshot()
	names := make([]string, 0, len(jobs))
	for name := range jobs {
		names = append(names, name)
	}
	slices.Sort(names)
	defs, err := s.store.Definitions(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		switch def := defs[name]; {
		case def.SpecRev == 0, def.Spec.Retired:
			missing = append(missing, name)
		case def.Spec.Hash != specOf(jobs[name]).Hash:
			different = append(different, name)
		}
	}
	return missing, different, nil
}
