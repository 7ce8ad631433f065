// Command etcdcron schedules jobs on etcd: each scheduled time once, by one leader, every run on record.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // zones work on machines that have no zone files
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], surroundings{
		stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: time.Now,
	})
	stop()
	os.Exit(code)
}

// run is the whole command, and its exit code.
func run(ctx context.Context, args []string, s surroundings) int {
	o := &options{surroundings: s}
	root := newRootCommand(o)
	root.SetArgs(args)
	return o.report(root.ExecuteContext(ctx))
}
