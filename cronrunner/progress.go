package cronrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/state"
)

// progressPause is the least time between two writes of a run's progress; what is said in between is left
// out, but for the last.
const progressPause = time.Second

// notes is what an attempt writes down of itself while it goes on. Safe for concurrent use.
type notes struct {
	store *state.Store
	owned state.Owned
	log   *zap.Logger

	mu     sync.Mutex
	last   *state.Progress
	closed bool          // the handler has returned
	noted  bool          // something was written, or may have been
	wake   chan struct{} // holds one token when there is progress to be written
	writer sync.WaitGroup
	stop   context.CancelFunc // of the writer; nil before the first progress

	checkpoints sync.Mutex // one write at a time: they are never reordered
	note        state.Note
	loaded      bool
	restored    json.RawMessage
}

func newNotes(store *state.Store, owned state.Owned, log *zap.Logger) *notes {
	return &notes{
		store: store, owned: owned, log: log, noted: owned.Noted,
		note: store.CheckpointNote(owned.Run.Job, owned.Run.ID, owned.Scope),
		wake: make(chan struct{}, 1),
		// The first attempt of a run has nothing to restore.
		loaded: !owned.Noted && owned.Scope != state.PerJob,
	}
}

// Progress says how far the run is: done of total, which is 0 when it is not known, and a message. It does
// not wait: at most one write a second is made, and the last is always written, with the run's end if not
// before.
func (r *Run) Progress(done, total int64, message string) {
	n := r.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.last = &state.Progress{
		Done: done, Total: total, Message: state.CutHead(message, state.MaxMessage), At: time.Now().UTC().Truncate(time.Millisecond),
	}
	n.noted = true
	if n.stop == nil {
		var ctx context.Context
		ctx, n.stop = context.WithCancel(context.Background())
		n.writer.Go(func() { n.write(ctx) })
	}
	select {
	case n.wake <- struct{}{}:
	default: // it will see this one too
	}
}

// write writes the progress until ctx ends. A write that fails says nothing to the handler: the next one, or
// the run's end, has it.
func (n *notes) write(ctx context.Context) {
	note := n.store.ProgressNote(n.owned.Run.Job, n.owned.Run.ID)
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		p := *n.last
		n.mu.Unlock()
		var err error
		if note, err = n.store.SaveProgress(ctx, n.owned, note, p); err != nil && ctx.Err() == nil {
			n.log.Debug("progress not written", zap.Error(err))
		}
		select {
		case <-time.After(progressPause):
		case <-ctx.Done():
			return
		}
	}
}

// close ends the writer and returns the last progress, and whether anything was written. It is called when the
// handler has returned; what it says after that is left out.
func (n *notes) close() (last *state.Progress, noted bool) {
	n.mu.Lock()
	n.closed = true
	if n.stop != nil {
		n.stop()
	}
	n.mu.Unlock()
	n.writer.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last, n.noted
}

// Errors of Checkpoint and Restore.
var (
	// ErrCheckpointTooLarge is a checkpoint of more than 64 KiB as JSON.
	ErrCheckpointTooLarge = errors.New("the checkpoint is too large")
	// ErrNotOwner is a run that another instance has taken over or ended.
	ErrNotOwner = state.ErrNotOwner
)

// Checkpoint writes down v, as JSON, as what a later attempt goes on from, and returns nil once it is
// durable. It replaces the one before. A later attempt of the run finds it with Restore; with the job's
// Checkpoint state.PerJob also the next run, until one succeeds. It tries until ctx ends; the handler's own
// context ends when the run is to stop, so what is to be written after that needs another, of at most
// Job.Grace. Errors: ErrCheckpointTooLarge, ErrNotOwner; ctx's when nobody knows whether it was written: it
// may be what a later attempt finds.
func (r *Run) Checkpoint(ctx context.Context, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if len(value) > state.MaxCheckpoint {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed; keep the data elsewhere and a reference here",
			ErrCheckpointTooLarge, len(value), state.MaxCheckpoint)
	}
	n := r.notes
	n.checkpoints.Lock()
	defer n.checkpoints.Unlock()
	n.mu.Lock()
	closed := n.closed
	n.noted = true
	n.mu.Unlock()
	if closed { // its end is being written, and does not know of this one
		return fmt.Errorf("checkpoint: the handler has returned: %w", ErrNotOwner)
	}
	note, err := n.store.SaveCheckpoint(ctx, n.owned, n.note, value)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	n.note, n.loaded, n.restored = note, true, value
	r.trace.checkpoint(len(value))
	return nil
}

// Restore reads the last checkpoint into v, and reports whether there is one: of this attempt, an earlier one,
// or, with the job's Checkpoint state.PerJob, an earlier run. It tries once; call it again if it fails.
func (r *Run) Restore(ctx context.Context, v any) (bool, error) {
	raw, err := r.restore(ctx)
	if err != nil || raw == nil {
		return false, err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("restore: the checkpoint is of another form: %w", err)
	}
	return true, nil
}

// restore is the checkpoint as JSON; nil if there is none.
func (r *Run) restore(ctx context.Context) (json.RawMessage, error) {
	n := r.notes
	n.checkpoints.Lock()
	defer n.checkpoints.Unlock()
	if !n.loaded {
		c, note, ok, err := n.store.LoadCheckpoint(ctx, n.note, n.owned.UID)
		if err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		n.loaded = true
		n.note = note
		if ok {
			n.restored = c.Value
		}
	}
	return n.restored, nil
}
