package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// takeover is how long the next leader took, from when the old one was told to go.
type takeover struct {
	Elected  float64 `json:"elected_ms"`
	Loaded   float64 `json:"loaded_ms"`    // all jobs
	FirstRun float64 `json:"first_run_ms"` // that the next leader claimed; runs are due each second
}

// measureTakeover has a leader resign: it stays a candidate, and goes on with what it runs.
func measureTakeover(ctx context.Context, b *bed, into *result) error {
	return b.succession(ctx, into, func(old *instance) { _ = old.scheduler.Elector().Resign(ctx) })
}

// measureHandover shuts a leader down, as a deployment does.
func measureHandover(ctx context.Context, b *bed, into *result) error {
	return b.succession(ctx, into, func(old *instance) { old.cancel() })
}

// succession measures the jobs of two instances, while the first one leaves the lead to the other.
func (b *bed) succession(ctx context.Context, into *result, leave func(*instance)) error {
	old, err := b.startInstance(ctx)
	if err != nil {
		return err
	}
	next, err := b.newInstance()
	if err != nil {
		return err
	}
	next.start(ctx)
	if err := b.waitCandidates(ctx, old, 2); err != nil {
		return err
	}
	left := make(chan time.Time, 1)
	err = b.underLoad(ctx, into, func() { left <- time.Now(); leave(old) })
	if err != nil {
		return err
	}
	began := <-left
	times := make([]float64, 3)
	for i, m := range []*moment{&next.elected, &next.loaded, &next.firstRun} {
		if err := m.wait(ctx); err != nil {
			return fmt.Errorf("the next leader: %w", err)
		}
		times[i] = milliseconds(m.at.Sub(began))
	}
	into.Takeover = &takeover{Elected: times[0], Loaded: times[1], FirstRun: times[2]}
	next.stop()
	old.stop()
	return nil
}

func (b *bed) waitCandidates(ctx context.Context, i *instance, n int64) error {
	const look = 50 * time.Millisecond
	for {
		resp, err := b.client.Get(ctx, i.scheduler.Store().Keys().Candidates(), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || resp.Count >= n {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(look)); err != nil {
			return err
		}
	}
}

// measureIdle measures what etcdcron does when there is nothing to do.
func measureIdle(ctx context.Context, b *bed, into *result) error {
	i, err := b.startInstance(ctx)
	if err != nil {
		return err
	}
	from := time.Now().Add(warmUp)
	if err := b.between(ctx, from, from.Add(time.Duration(b.seconds)*time.Second), into); err != nil {
		return err
	}
	i.stop()
	return nil
}
