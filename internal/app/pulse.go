package app

import (
	"context"
	"time"
)

const (
	pulseEvery = time.Second // how often etcd is asked at most
	pulseLimit = time.Second // how long it has to answer
)

// pulse asks a question of etcd, and keeps the answer for a second, however many want it. Safe for
// concurrent use.
type pulse[T any] struct {
	ask  func(ctx context.Context) (T, error)
	turn chan struct{}
	at   time.Time
	last T
	err  error
}

func newPulse[T any](ask func(ctx context.Context) (T, error)) *pulse[T] {
	return &pulse[T]{ask: ask, turn: make(chan struct{}, 1)}
}

// get is the answer, at most a second old. Whoever asks for an answer that is not there waits for it
// pulseLimit at most.
func (p *pulse[T]) get(ctx context.Context) (T, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	if p.at.IsZero() || time.Since(p.at) >= pulseEvery {
		// The answer is for others too, so it does not matter that this asker may go away.
		askCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pulseLimit)
		defer cancel()
		p.last, p.err = p.ask(askCtx)
		p.at = time.Now()
	}
	return p.last, p.err
}
