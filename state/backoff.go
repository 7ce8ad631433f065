package state

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// backoff pauses a loop that retries: doubling from next to limit, with full jitter, logging at most
// once in ten seconds.
type backoff struct {
	next, limit time.Duration
	logged      time.Time
}

// sleep pauses; false when ctx ended or stop was closed meanwhile.
func (b *backoff) sleep(ctx context.Context, stop <-chan struct{}) bool {
	pause := b.next/2 + rand.N(b.next/2+1)
	b.next = min(2*b.next, b.limit)
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// lasted begins anew if what was tried went well for a while.
func (b *backoff) lasted(d time.Duration) {
	if d > 2*b.limit {
		b.next = retryFloor
	}
}

func (b *backoff) warn(log *zap.Logger, msg string, err error) {
	if now := time.Now(); now.Sub(b.logged) >= 10*time.Second {
		b.logged = now
		log.Warn(msg, zap.Error(err))
	}
}
