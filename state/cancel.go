package state

import (
	"context"
	"fmt"
)

// CancelOf reads the request to cancel a run. Its error is ErrNotFound when there is none.
func (s *Store) CancelOf(ctx context.Context, job, run string) (Standing, error) {
	kv, err := s.getOne(ctx, s.keys.Cancel(job, run))
	switch {
	case err != nil:
		return Standing{}, fmt.Errorf("read the request to cancel run %s of job %s: %w", run, job, err)
	case kv == nil:
		return Standing{}, fmt.Errorf("request to cancel run %s of job %s: %w", run, job, ErrNotFound)
	}
	return DecodeRequest(kv)
}
