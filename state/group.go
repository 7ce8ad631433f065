package state

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Bounds of a packed transaction. etcd refuses more than 128 operations, those inside a nested
// transaction counted on top of the level above, and requests over 1.5 MiB.
const (
	maxPacked   = 96
	maxBytes    = 1 << 20
	maxInFlight = 3 // transactions on their way at once; more do not make etcd faster
)

// group is group commit: mutations that wait are packed into one transaction, each with its own compares,
// so that one that is refused fails alone. It sends as soon as a place is free, so an idle system waits
// for nothing and a burst packs itself. The queue is first come, first served, and as long as there are
// callers.
//
// A caller that finds a place free sends for all who wait, until its own mutation is answered; then it hands the place
// to the caller who waits longest. It sends beside itself, for it must not be kept when its context ends: what it sends
// is others' too, and goes on, within the timeout of each transaction.
type group struct {
	kv      clientv3.KV
	timeout time.Duration
	hook    CommitHook

	mu      sync.Mutex
	queue   []*waiter
	sending int                    // places taken
	orphans map[chan struct{}]bool // senders whose callers have given up
}

// waiter is a call of Commit.
type waiter struct {
	m    Mutation
	size int
	turn chan struct{} // closed when the call has a place, and has to give it back
	done chan struct{} // closed when res and err are there
	res  Result
	err  error
}

// Commit implements Committer.
func (g *group) Commit(ctx context.Context, m Mutation) (Result, error) {
	w := &waiter{m: m, size: sizeOf(m.Then) + sizeOf(m.Else), turn: make(chan struct{}), done: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, w)
	if g.sending < maxInFlight {
		g.sending++
		close(w.turn)
	}
	g.mu.Unlock()
	select {
	case <-w.done:
		if !closed(w.turn) {
			return w.res, w.err
		}
	case <-w.turn:
	case <-ctx.Done():
		if g.leave(w) {
			return Result{}, context.Cause(ctx)
		}
	}
	sent := make(chan struct{})
	go func() { // waited for here, or by wait
		defer g.left(sent)
		g.sendUntil(ctx, w)
	}()
	select {
	case <-sent:
	case <-ctx.Done():
		g.leaveTo(sent)
		return Result{}, context.Cause(ctx)
	}
	select {
	case <-w.done:
		return w.res, w.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// leaveTo leaves a sender alone that has not ended.
func (g *group) leaveTo(sent chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed(sent) {
		return
	}
	if g.orphans == nil {
		g.orphans = make(map[chan struct{}]bool)
	}
	g.orphans[sent] = true
}

// left notes that a sender has ended.
func (g *group) left(sent chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(sent)
	delete(g.orphans, sent)
}

// wait returns when no sender is left alone.
func (g *group) wait() {
	for {
		var next chan struct{}
		g.mu.Lock()
		for sent := range g.orphans {
			next = sent
		}
		g.mu.Unlock()
		if next == nil {
			return
		}
		<-next
	}
}

// sendUntil sends for all who wait until w is answered, and hands its place on.
func (g *group) sendUntil(ctx context.Context, w *waiter) {
	for !closed(w.done) {
		batch := g.take()
		if len(batch) == 0 {
			break // ours is on its way by another sender
		}
		g.send(ctx, batch)
	}
	g.handOn()
}

// leave takes a call that does not wait any longer out of the queue. It reports false when the place was
// handed to it meanwhile: then it has to send. A mutation that is on its way already stays so.
func (g *group) leave(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if closed(w.turn) {
		return false
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *waiter) bool { return other == w })
	return true
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// handOn gives the place to who waits longest, or frees it.
func (g *group) handOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.queue {
		if !closed(w.turn) { // the others have a place already
			close(w.turn)
			return
		}
	}
	g.sending--
}

// take is the next batch: in order, one mutation of a job at most, within the bounds.
func (g *group) take() []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	var batch []*waiter
	jobs := make(map[string]struct{}, min(len(g.queue), maxPacked))
	size := 0
	left := g.queue[:0]
	for i, w := range g.queue {
		if len(batch) == maxPacked {
			left = append(left, g.queue[i:]...)
			break
		}
		if _, twice := jobs[w.m.Job]; twice || len(batch) > 0 && size+w.size > maxBytes {
			left = append(left, w)
			continue
		}
		jobs[w.m.Job] = struct{}{}
		size += w.size
		batch = append(batch, w)
	}
	clear(g.queue[len(left):])
	g.queue = left
	return batch
}

// send sends a batch and answers its callers. It does not end with the sender's context: the others have
// theirs. What makes etcd refuse the transaction as a whole (one lease that is gone is enough) is found
// by sending one by one.
func (g *group) send(ctx context.Context, batch []*waiter) {
	ctx = context.WithoutCancel(ctx)
	if len(batch) == 1 {
		g.answerOne(ctx, batch[0])
		return
	}
	ops := make([]clientv3.Op, len(batch))
	for i, w := range batch {
		ops[i] = clientv3.OpTxn(w.m.If, w.m.Then, w.m.Else)
	}
	callCtx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	start := time.Now()
	resp, err := g.kv.Txn(callCtx).Then(ops...).Commit()
	g.hook(time.Since(start), len(batch), err)
	if err != nil && definite(err) {
		for i, w := range batch {
			if g.answerOne(ctx, w); w.err != nil && !definite(w.err) { // etcd does not answer; nor would it the others
				for _, rest := range batch[i+1:] {
					rest.err = w.err
					close(rest.done)
				}
				return
			}
		}
		return
	}
	for i, w := range batch {
		switch {
		case err != nil:
			w.err = err
		case resp.Responses[i].GetResponseTxn() == nil:
			w.err = errors.New("etcd answered a packed transaction in another form")
		default:
			r := resp.Responses[i].GetResponseTxn()
			w.res = Result{Succeeded: r.Succeeded, Revision: resp.Header.Revision, Responses: r.Responses}
		}
		close(w.done)
	}
}

func (g *group) answerOne(ctx context.Context, w *waiter) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	start := time.Now()
	resp, err := g.kv.Txn(ctx).If(w.m.If...).Then(w.m.Then...).Else(w.m.Else...).Commit()
	g.hook(time.Since(start), 1, err)
	if err != nil {
		w.err = err
	} else {
		w.res = Result{Succeeded: resp.Succeeded, Revision: resp.Header.Revision, Responses: resp.Responses}
	}
	close(w.done)
}

func sizeOf(ops []clientv3.Op) (n int) {
	for _, op := range ops {
		n += len(op.KeyBytes()) + len(op.ValueBytes())
	}
	return n
}
