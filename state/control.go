package state

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Control is what people have told a job: to stand still, or to go on. It stays after the job was resumed,
// since a leader that comes later must know that the times before were paused, not missed.
type Control struct {
	Paused bool      `json:"paused"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"` // by the clock of whoever asked
}

// IsPaused reads the value of a control's key. One that cannot be decoded pauses nothing; the job is invalid.
func IsPaused(kv *mvccpb.KeyValue) bool {
	c, err := decode[Control]("control", kv.Value)
	return err == nil && c.Paused
}

// MaxNote is the greatest length of a reason or of a name of somebody who asks, in bytes. Longer ones are cut.
const MaxNote = 1 << 10

// Pause has the job start nothing more, from the moment it returns: every claim compares the job's control.
// A run that is running goes on, with its retries, and one that waits goes on waiting. What falls due meanwhile is recorded as skipped
// when the job is resumed. A job that is paused already stays so, with the new reason. Errors: ErrNotFound, ErrContended.
func (s *Store) Pause(ctx context.Context, job, by, reason string) (Control, error) {
	return s.control(ctx, job, Control{Paused: true, By: by, Reason: reason})
}

// Resume has the job go on with the next scheduled time. One that is not paused stays as it is. Errors as for
// Pause.
func (s *Store) Resume(ctx context.Context, job, by, reason string) (Control, error) {
	return s.control(ctx, job, Control{By: by, Reason: reason})
}

// control replaces the job's control, unless there is nothing to resume.
func (s *Store) control(ctx context.Context, job string, next Control) (Control, error) {
	next.At = time.Now().UTC().Truncate(time.Second)
	next.By, next.Reason = CutHead(next.By, MaxNote), CutHead(next.Reason, MaxNote)
	value := encode(next)
	for range maxContention {
		def, err := s.Job(ctx, job)
		if err != nil {
			return Control{}, err
		}
		if !next.Paused && !def.Control.Paused && def.Broken == nil {
			return def.Control, nil
		}
		controlKey := s.keys.Control(job)
		res, err := s.settle(ctx, Mutation{
			Job: job,
			If: []clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(s.keys.Spec(job)), ">", 0),
				guard{key: controlKey, want: def.ControlRev}.cmp(),
			},
			Then: []clientv3.Op{clientv3.OpPut(controlKey, string(value))},
			Else: []clientv3.Op{clientv3.OpGet(controlKey)},
		})
		if err != nil {
			return Control{}, fmt.Errorf("control of job %s: %w", job, err)
		}
		if kv := firstKVs(res)[0]; res.Succeeded || kv != nil && bytes.Equal(kv.Value, value) {
			return next, nil
		}
	}
	return Control{}, fmt.Errorf("job %s: %w", job, ErrContended)
}
