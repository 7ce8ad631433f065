package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// reread is how often the definitions are read again: a watch of them would bring every record of every run.
const reread = 30 * time.Second

// board is what top knows: the definitions as they were read, the statuses and controls as they are.
type board struct {
	c       *cluster
	changed chan struct{} // holds one while there is something new

	fault error // of the last look; nil when it went well

	mu    sync.Mutex // the followers write what stands below
	defs  map[string]*state.Definition
	ended endings
}

func newBoard(c *cluster) *board {
	return &board{c: c, changed: make(chan struct{}, 1), defs: make(map[string]*state.Definition)}
}

// watch shows the board, and again with each change, until ctx ends.
func (b *board) watch(ctx context.Context, show func(lines []string) error) error {
	if err := b.read(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer stop()
	keys := b.c.keys
	followers.Go(func() { _ = b.c.store.Follow(ctx, keys.Statuses(), b.events(b.status)) })  // until ctx ends
	followers.Go(func() { _ = b.c.store.Follow(ctx, keys.Controls(), b.events(b.control)) }) // until ctx ends

	looked := time.Now()
	for {
		if time.Since(looked) >= reread {
			looked = time.Now()
			b.note(b.read(ctx))
		}
		if err := b.draw(ctx, show); err != nil {
			return err
		}
		drawn := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		case <-time.After(drawLeast):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(drawn.Add(drawMost))):
		}
	}
}

// draw looks into what runs, and shows everything.
func (b *board) draw(ctx context.Context, show func(lines []string) error) error {
	screen, w := b.c.o.screen(b.c.o.stdout), b.c.o.when()
	b.mu.Lock()
	defs := make([]state.Definition, 0, len(b.defs))
	for _, name := range slices.Sorted(maps.Keys(b.defs)) {
		defs = append(defs, *b.defs[name])
	}
	pace := b.ended.pace(time.Now())
	b.mu.Unlock()

	view := inspect.Overlook(defs, max(screen.Height, snapshotItems)/2, w.now)
	limited, cancel := b.c.limited(ctx)
	defer cancel()
	var err error
	if view.Leader, err = b.c.perhapsLeader(limited); err == nil {
		view.RunningRuns = view.RunningRuns[:min(len(view.RunningRuns), runningRows(view, screen))]
		err = view.LookInto(limited, b.c.store)
	}
	if ctx.Err() != nil {
		return nil
	}
	b.note(err)
	lines := topLines(view, &pace, b.c.keys.Root(), w, screen)
	if b.fault != nil {
		lines[0] = screen.Paint(term.Bad, "etcd does not answer: "+b.fault.Error())
	}
	return show(lines)
}

// note keeps the error of a look, to be shown until one goes well.
func (b *board) note(err error) { b.fault = err }

// read reads all definitions.
func (b *board) read(ctx context.Context) error {
	defs, err := b.c.store.Jobs(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.defs)
	for i := range defs {
		b.defs[defs[i].Spec.Name] = &defs[i]
	}
	return nil
}

// events has take see every key that stands or is put; nil says that a key of that name is gone.
func (b *board) events(take func(key string, kv *mvccpb.KeyValue)) state.Events {
	return state.Events{
		List: func(kvs []*mvccpb.KeyValue) {
			for _, kv := range kvs {
				take(string(kv.Key), kv)
			}
		},
		Event: func(ev *clientv3.Event) {
			if ev.Type == mvccpb.Event_DELETE {
				take(string(ev.Kv.Key), nil)
			} else {
				take(string(ev.Kv.Key), ev.Kv)
			}
			select {
			case b.changed <- struct{}{}:
			default:
			}
		},
	}
}

func (b *board) status(key string, kv *mvccpb.KeyValue) {
	job := b.c.keys.JobOfStatus(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if kv == nil {
		delete(b.defs, job)
		return
	}
	view := state.DecodeStatus(job, kv)
	def := b.defs[job]
	switch {
	case def == nil: // its definition comes with the next look
		b.defs[job] = &state.Definition{Spec: state.Spec{Name: job}, SpecRev: 1, View: view}
	case view.Revision > def.View.Revision:
		b.ended.add(ends(&view.Status)-ends(&def.View.Status), time.Now())
		def.View = view
	}
}

// ends is how many runs of a job are over, of those that began.
func ends(st *state.JobStatus) int64 { return st.SucceededTotal + st.FailedTotal + st.CanceledTotal }

func (b *board) control(key string, kv *mvccpb.KeyValue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if def := b.defs[b.c.keys.JobOfControl(key)]; def != nil {
		def.Control.Paused = kv != nil && state.IsPaused(kv)
	}
}

// paceSeconds is how far back the rate of runs counts.
const paceSeconds = 10

// endings counts runs by the second in which they ended.
type endings struct {
	began  time.Time // when it began to count
	counts [paceSeconds + 1]int64
	second int64 // that the counts go up to
}

// add counts n runs.
func (e *endings) add(n int64, now time.Time) {
	e.upTo(now)
	if n > 0 {
		e.counts[e.second%int64(len(e.counts))] += n
	}
}

// pace is how many runs end in a second, over the last whole ones.
func (e *endings) pace(now time.Time) float64 {
	e.upTo(now)
	seconds := min(int64(now.Sub(e.began).Seconds()), paceSeconds)
	if seconds == 0 {
		return 0
	}
	sum := int64(0)
	for i := int64(1); i <= seconds; i++ { // not the one that goes on
		sum += e.counts[(e.second-i+int64(len(e.counts)))%int64(len(e.counts))]
	}
	return float64(sum) / float64(seconds)
}

// upTo moves on to the second of now, and forgets those that are too old.
func (e *endings) upTo(now time.Time) {
	if e.began.IsZero() {
		e.began, e.second = now, now.Unix()
	}
	for n := int64(0); e.second < now.Unix() && n < int64(len(e.counts)); n++ {
		e.second++
		e.counts[e.second%int64(len(e.counts))] = 0
	}
	e.second = max(e.second, now.Unix())
}
