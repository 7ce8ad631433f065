package state

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

const (
	firstWindow = time.Hour            // how far back the first range of a page looks
	minWindow   = time.Second          // ids have whole seconds
	maxWindow   = 366 * 24 * time.Hour // and how far a later one does
	ahead       = 10 * time.Minute     // how far in the future an id may lie: clocks differ
	maxPage     = 1000
)

// Page is a part of a job's history, newest first. Next continues it; "" at its end.
type Page struct {
	Runs []Run
	Next string
}

// History reads up to limit runs of job (1 to 1000), newest first, beginning before the run id cursor,
// or with the newest when that is "". A record that cannot be decoded is among them with its job, its id
// and the fault as its error, so that it hides no others; a key that is no run id is left out.
//
// Ids sort by time, so it ranges over windows of time, going back: a window that holds too much is
// narrowed, the one after is wider again. (Asked to sort descending, etcd reads the whole history for
// every page.)
func (s *Store) History(ctx context.Context, job, cursor string, limit int) (Page, error) {
	if err := CheckJobName(job); err != nil {
		return Page{}, err
	}
	page, err := s.history(ctx, s.keys.Runs(job), cursor, min(max(limit, 1), maxPage))
	if err != nil {
		return Page{}, fmt.Errorf("history of job %s: %w", job, err)
	}
	for i := range page.Runs {
		page.Runs[i].Job = job
	}
	return page, nil
}

func (s *Store) history(ctx context.Context, prefix, cursor string, limit int) (page Page, err error) {
	end, newest := prefix+"~", time.Now().Add(ahead).Truncate(time.Second) // '~' is after every id
	if cursor != "" {
		if newest, err = RunIDTime(cursor); err != nil {
			return Page{}, err
		}
		end, newest = prefix+cursor, newest.Add(time.Second) // others may share the cursor's second
	}
	oldest, err := s.oldestID(ctx, prefix)
	if err != nil {
		return Page{}, err
	}
	for window := firstWindow; newest.After(oldest) && len(page.Runs) < limit; {
		from := newest.Add(-window)
		if from.Before(oldest) {
			from = oldest
		}
		left := limit - len(page.Runs)
		resp, err := s.rangeOnce(ctx, prefix+RunID(from), end, int64(left+1))
		if err != nil {
			return Page{}, err
		}
		kvs := resp.Kvs
		if len(kvs) > left {
			if window > minWindow {
				window = max(min(window, newest.Sub(from))/8, minWindow)
				continue
			}
			if kvs, err = s.wholeRange(ctx, prefix+RunID(from), end); err != nil {
				return Page{}, err
			}
		}
		slices.Reverse(kvs)
		page.add(prefix, kvs, left)
		end, newest, window = prefix+RunID(from), from, min(window*4, maxWindow)
	}
	if newest.After(oldest) && page.Next == "" && len(page.Runs) > 0 {
		page.Next = page.Runs[len(page.Runs)-1].ID
	}
	return page, nil
}

// add appends at most limit runs and says where the next page begins if some are left.
func (p *Page) add(prefix string, kvs []*mvccpb.KeyValue, limit int) {
	for _, kv := range kvs {
		id := string(kv.Key)[len(prefix):]
		if _, err := RunIDTime(id); err != nil {
			continue
		}
		if limit == 0 {
			p.Next = p.Runs[len(p.Runs)-1].ID
			return
		}
		limit--
		r, err := decodeRun(kv)
		r.ID = id
		if err != nil {
			r.Error = err.Error()
		}
		p.Runs = append(p.Runs, r)
	}
}

// afterAll is after every time that an id can have.
var afterAll = time.Unix(1<<40, 0)

// oldestID is the time of the first id, or afterAll when there is none.
func (s *Store) oldestID(ctx context.Context, prefix string) (time.Time, error) {
	epoch := time.Unix(0, 0) // before every run there has ever been
	resp, err := s.rangeOnce(ctx, prefix+RunID(epoch), prefix+"~", 1)
	if err != nil {
		return time.Time{}, err
	}
	if len(resp.Kvs) == 0 {
		return afterAll, nil
	}
	t, err := RunIDTime(string(resp.Kvs[0].Key)[len(prefix):])
	if err != nil {
		return epoch, nil //nolint:nilerr // put there by hand; what came first is not known
	}
	return t, nil
}

func (s *Store) wholeRange(ctx context.Context, from, end string) (kvs []*mvccpb.KeyValue, err error) {
	for {
		resp, err := s.rangeOnce(ctx, from, end, pageSize)
		if err != nil {
			return nil, err
		}
		kvs = append(kvs, resp.Kvs...)
		if !resp.More {
			return kvs, nil
		}
		from = string(kvs[len(kvs)-1].Key) + "\x00"
	}
}

// OldestRun is the time of the oldest record of a job; zero when it has none.
func (s *Store) OldestRun(ctx context.Context, job string) (time.Time, error) {
	if err := CheckJobName(job); err != nil {
		return time.Time{}, err
	}
	oldest, err := s.oldestID(ctx, s.keys.Runs(job))
	if err != nil {
		return time.Time{}, fmt.Errorf("oldest run of job %s: %w", job, err)
	}
	if oldest.Equal(afterAll) {
		return time.Time{}, nil
	}
	return oldest, nil
}
