package state

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// RetryHook is told of each call to etcd that failed and is tried again. operation says for what, one of few; of
// this package "commit", "read", "watch" and "lease". It must not block.
type RetryHook func(operation string, err error)

// told calls the hook, if there is one.
func (h RetryHook) told(operation string, err error) {
	if h != nil {
		h(operation, err)
	}
}

// backoff pauses a loop that retries: doubling from next to limit, with full jitter. Each time is told to hook; the
// log has one line in ten seconds at most.
type backoff struct {
	operation   string
	hook        RetryHook // nil for none
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

// failed tells that it is tried again.
func (b *backoff) failed(log *zap.Logger, msg string, err error) {
	b.hook.told(b.operation, err)
	if now := time.Now(); now.Sub(b.logged) >= 10*time.Second {
		b.logged = now
		log.Warn(msg, zap.Error(err))
	}
}
