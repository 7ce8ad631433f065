package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Bounds of what a run may say of itself.
const (
	MaxCheckpoint = 64 << 10 // bytes of a checkpoint, as JSON
	MaxMessage    = 1 << 10  // bytes of a progress message; longer ones are cut
)

// Progress is how far a run is.
type Progress struct {
	Done    int64     `json:"done"`
	Total   int64     `json:"total,omitempty"` // 0 when it is not known
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// Checkpoint is a value from which a later attempt can go on: of the same run, or, where the job says so, of a
// later one.
type Checkpoint struct {
	Value   json.RawMessage `json:"value"`
	UID     string          `json:"uid"` // of the job's creation
	Run     string          `json:"run"` // that wrote it, and its attempt
	Attempt int             `json:"attempt"`
	At      time.Time       `json:"at"`
}

// Scope is how long a checkpoint lasts.
type Scope string

// The scopes of a checkpoint.
const (
	PerRun Scope = "run" // until its run is over
	PerJob Scope = "job" // until a run of the job succeeds
)

// Note is one of the keys that a run's owner writes about it: its progress or its checkpoint. Revision is the
// mod revision that the key is known to have; 0 when it is not there. Each write compares it, so a write whose
// answer was lost and that is applied late cannot undo a later one.
type Note struct {
	key      string
	Revision int64
}

// ProgressNote is where the progress of a run stands.
func (s *Store) ProgressNote(job, run string) Note { return Note{key: s.keys.Progress(job, run)} }

// CheckpointNote is where the checkpoint of a run stands.
func (s *Store) CheckpointNote(job, run string, scope Scope) Note {
	if scope == PerJob {
		return Note{key: s.keys.JobCheckpoint(job)}
	}
	return Note{key: s.keys.Checkpoint(job, run)}
}

// SaveProgress writes how far a run of ours is. Its error is ErrNotOwner when the run is not ours any more;
// ctx's when the outcome stays unknown.
func (s *Store) SaveProgress(ctx context.Context, o Owned, n Note, p Progress) (Note, error) {
	p.Message = CutHead(p.Message, MaxMessage)
	return s.save(ctx, o, n, encode(p))
}

// SaveCheckpoint writes a checkpoint of a run of ours. It is durable when the error is nil. Errors as for
// SaveProgress.
func (s *Store) SaveCheckpoint(ctx context.Context, o Owned, n Note, value json.RawMessage) (Note, error) {
	return s.save(ctx, o, n, encode(Checkpoint{
		Value: value, UID: o.UID, Run: o.Run.ID, Attempt: o.Run.Attempt, At: time.Now().UTC().Truncate(time.Millisecond),
	}))
}

func (s *Store) save(ctx context.Context, o Owned, n Note, value []byte) (Note, error) {
	owner := s.isOwner(&o)
	for range maxContention {
		res, err := s.settle(ctx, s.noteMutation(o, n, value))
		if err != nil {
			return n, fmt.Errorf("note of run %s of job %s: %w", o.Run.ID, o.Run.Job, err)
		}
		if res.Succeeded {
			n.Revision = res.Revision
			return n, nil
		}
		stands := firstKVs(res)
		if kv := stands[0]; kv != nil && bytes.Equal(kv.Value, value) { // an earlier try had landed
			n.Revision = kv.ModRevision
			return n, nil
		}
		if !owner.holds(stands[1]) && !mutateCheckpoint {
			return n, fmt.Errorf("note of run %s of job %s: %w", o.Run.ID, o.Run.Job, ErrNotOwner)
		}
		// The run is ours, so whatever stands there is older: of an earlier attempt, of an earlier run of the job,
		// or put or deleted by hand.
		n.Revision = 0
		if kv := stands[0]; kv != nil {
			n.Revision = kv.ModRevision
		}
	}
	return n, fmt.Errorf("note of run %s of job %s: %w", o.Run.ID, o.Run.Job, ErrContended)
}

func (s *Store) noteMutation(o Owned, n Note, value []byte) Mutation {
	owner := s.isOwner(&o)
	m := Mutation{
		Job:  o.Run.Job,
		If:   []clientv3.Cmp{owner.cmp(), guard{key: n.key, want: n.Revision}.cmp()},
		Then: []clientv3.Op{clientv3.OpPut(n.key, string(value))},
		Else: []clientv3.Op{clientv3.OpGet(n.key), clientv3.OpGet(owner.key)},
	}
	if mutateCheckpoint {
		m.If = m.If[1:]
	}
	return m
}

// LoadCheckpoint reads a checkpoint of the job of that creation; ok is false when there is none. What an owner
// reads is the last that was acknowledged to any attempt before its own: taking a run over changes what their
// writes compare.
func (s *Store) LoadCheckpoint(ctx context.Context, n Note, uid string) (c Checkpoint, now Note, ok bool, err error) {
	kv, err := s.getOne(ctx, n.key)
	if err != nil || kv == nil {
		return Checkpoint{}, Note{key: n.key}, false, err
	}
	c, err = decode[Checkpoint]("checkpoint", kv.Value)
	return c, Note{key: n.key, Revision: kv.ModRevision}, err == nil && c.UID == uid, err
}

// ProgressOf reads how far a run is; nil when it has not said.
func (s *Store) ProgressOf(ctx context.Context, job, run string) (*Progress, error) {
	kv, err := s.getOne(ctx, s.keys.Progress(job, run))
	if err != nil || kv == nil {
		return nil, err
	}
	p, err := decode[Progress]("progress", kv.Value)
	return &p, err
}

// clearNotes deletes what a run has noted, when it ends.
func (s *Store) clearNotes(end *Run, scope Scope) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpDelete(s.keys.Progress(end.Job, end.ID))}
	switch {
	case scope != PerJob:
		ops = append(ops, clientv3.OpDelete(s.keys.Checkpoint(end.Job, end.ID)))
	case end.Status == Succeeded:
		ops = append(ops, clientv3.OpDelete(s.keys.JobCheckpoint(end.Job)))
	}
	return ops
}
