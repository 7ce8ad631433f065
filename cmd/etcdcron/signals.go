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

	// Caught from the beginning: between the first of these and a later Notify, a second would end the process and
	// leave its commands to themselves.
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	parent := ctx

	// A terminal that goes away sends SIGHUP up to twice, so that stays caught until the drain is over.
	// Under nohup it means nothing.
	hangup := context.CancelFunc(func() {})
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, hangup = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	// Whatever the first signal was, the next of these does not wait for running jobs: they are stopped, and
	// what they are is recorded. One more ends the process as it would any other.
	hurried, over := make(chan struct{}), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		signals := 1
		if cause := context.Cause(parent); cause != nil && cause != context.Canceled { //nolint:errorlint // a signal says that it is one too
			signals = 2 // the first was one of them, and is caught here too
		}
		for range signals {
			select {
			case <-caught:
			case <-over:
				return
			}
		}
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		close(hurried)
	})
	return ctx, hurried, func() {
		close(over)
		waiting.Wait()
		hangup()
		signal.Stop(caught)
	}
}
