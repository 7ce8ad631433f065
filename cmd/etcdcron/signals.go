package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// untilSignal is ctx for serve: it ends with SIGHUP too, and a log that nobody reads any more is no reason
// to die. Its cause is the signal. hurry is closed by a second signal; a third ends the process. Call stop
// when serve has ended.
func untilSignal(ctx context.Context) (_ context.Context, hurry <-chan struct{}, stop func()) {
	// After `serve | tee log` and Ctrl-C tee is gone first. Caught, SIGPIPE makes a write fail and no more;
	// ignored, it would be so for every job as well, since a command inherits what is ignored.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // to the end of the process: the last lines come after the drain

	// A terminal that goes away sends SIGHUP up to twice, so that stays caught until the drain is over.
	// Under nohup it means nothing.
	hangup := context.CancelFunc(func() {})
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, hangup = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	// Whatever the first signal was, the next of these does not wait for running jobs: they are stopped, and
	// what they are is recorded. One more ends the process as it would any other.
	second := make(chan os.Signal, 1)
	hurried, over := make(chan struct{}), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		select {
		case <-second:
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			close(hurried)
		case <-over:
		}
	})
	return ctx, hurried, func() {
		close(over)
		waiting.Wait()
		hangup()
		signal.Stop(second)
	}
}
