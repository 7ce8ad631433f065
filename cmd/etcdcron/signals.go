package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal is ctx for serve: it ends with SIGHUP too, and a log that nobody reads any more is no reason
// to die. Its cause is the signal. Call stop when serve has ended.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	// After `serve | tee log` and Ctrl-C tee is gone first. Caught, SIGPIPE makes a write fail and no more;
	// ignored, it would be so for every job as well, since a command inherits what is ignored.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)

	// A terminal that goes away sends SIGHUP up to twice, so that stays caught until the drain is over.
	// Under nohup it means nothing.
	hangup := context.CancelFunc(func() {})
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, hangup = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	// Whatever the first signal was, these then end the process at once.
	kept := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	return ctx, func() {
		kept()
		hangup()
		signal.Stop(pipe)
	}
}
