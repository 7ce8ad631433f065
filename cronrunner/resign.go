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
			t.acted(r, nil, 0)
			switch {
			case errors.Is(err, state.ErrNotLeading):
				return err
			case errors.Is(err, state.ErrRequestGone): // withdrawn
				return nil
			case err != nil:
				t.log.Warn("a request to resign could not be answered; it stands until somebody asks again", zap.Error(err))
				return nil //nolint:nilerr // there is nothing to do
			case r.Term != t.held.Revision:
				t.log.Info("a request to resign is dropped: it is of another term", zap.Int64("of", r.Term))
				return nil
			}
			t.log.Info("handing over on request", zap.String("by", r.By), zap.String("reason", r.Reason))
			return fmt.Errorf("%w: on request", leader.ErrResigned)
		})
	})
}
