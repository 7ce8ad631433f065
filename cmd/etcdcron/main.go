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
	context.AfterFunc(ctx, stop) // a second signal is none of ours; serve has its own way with it
	code := run(ctx, os.Args[1:], surroundings{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: time.Now,
	})
	stop()
	os.Exit(code)
}

// run is the whole command, and its exit code.
func run(ctx context.Context, args []string, s surroundings) int {
	o := &options{surroundings: s}
	root := newRootCommand(o)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if o.log != nil {
		o.log.close() // what it says comes before the error
	}
	return o.report(err)
}
