package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPulseAsksOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := newPulse(func(context.Context) (int, error) {
			asked++
			return asked, nil
		})
		for range 3 {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { _, _ = p.get(t.Context()) })
			}
			all.Wait()
			time.Sleep(pulseEvery) // virtual
		}
		require.Equal(t, 3, asked)
	})
}

// An etcd that hangs costs each asker one limit, and an asker that goes away spoils nothing for others.
func TestPulseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulse(func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		start := time.Now()
		impatient, cancel := context.WithTimeoutCause(t.Context(), pulseLimit/10, errors.New("gone"))
		defer cancel()
		_, err := p.get(impatient)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = p.get(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, pulseLimit, time.Since(start))
	})
}
