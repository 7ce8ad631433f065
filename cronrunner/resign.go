package cronrunner

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// askedToResign ends this term, if it is the one that is meant: with the request gone first, in a write that compares
// the term, so that whoever leads next, this instance perhaps, hears nothing of it. A request for another term,
// which is over, goes too.
func (t *term) askedToResign(r state.Standing) {
	t.s.attempts.work.Go(func() {
		_, err := t.s.store.Drop(t.s.attempts.recording, t.held, state.Acted{Standing: r})
		t.tell(func(t *term) error {
			switch {
			case errors.Is(err, state.ErrNotLeading):
				return err
			case errors.Is(err, state.ErrRequestGone): // by an earlier try, whose answer was lost; or withdrawn just now
			case err != nil: // nobody hears of it if somebody asks again: it stands
				t.s.retrying("job", err)
				t.log.Warn("a request to resign could not be answered, trying again", zap.Error(err))
				t.later(r, func(t *term) { t.askedToResign(r) })
				return nil //nolint:nilerr // it is tried again
			}
			t.acted(r, nil, 0)
			if r.Term != t.held.Revision {
				t.log.Info("a request to resign is dropped: it is of another term", zap.Int64("of", r.Term))
				return nil
			}
			t.log.Info("handing over on request", zap.String("by", r.By), zap.String("reason", r.Reason))
			return fmt.Errorf("%w: on request", leader.ErrResigned)
		})
	})
}
