package cronrunner

import (
	"errors"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// replaceRunning cancels the running runs of a job so that the newest one can run. One that goes on at
// another instance is canceled by request.
func (t *term) replaceRunning(js *jobState) task {
	for _, id := range js.def.View.Status.Live {
		if t.s.attempts.stop(js.name, id, ErrReplaced) {
			continue
		}
		if _, asked := t.s.attempts.toBeCanceled(js.name, id); asked || js.replacing == id {
			continue
		}
		return task{op: func() effect { return t.askToReplace(js, id) }}
	}
	return task{}
}

func (t *term) askToReplace(js *jobState, id string) effect {
	err := t.s.store.AskToReplace(t.s.attempts.recording, t.held, js.name, id, t.s.self.ID)
	return func(t *term) error {
		switch {
		case errors.Is(err, state.ErrNotFound): // its record is gone: it is owed an end
			js.recover, err = true, nil
		case err == nil:
			js.replacing = id // there is one, unless several were allowed before
			t.log.Info("a run elsewhere is to be replaced", zap.String("job", js.name), zap.String("run", id))
		}
		return t.settled(js, state.View{}, err)
	}
}
