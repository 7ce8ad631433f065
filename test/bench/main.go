// Command bench measures ways to run many jobs on time, side by side on one machine. docs/benchmarks says what
// its columns mean.
//
// Each measurement has a process of its own, with an etcd of its own in it that writes through to the disk, and
// a data folder of its own. So what a run costs is what that process used, etcd's share included.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// config is what the command was asked for.
type config struct {
	scenarios   []string
	contestants []string
	seconds     int
	out         string
	cpuProfile  string
	child       bool
}

const (
	fullSeconds  = 15
	quickSeconds = 5
)

func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	scenario := flags.String("scenario", "", "the scenarios to run, separated by commas: burst-N, spread-N, blocked-N, ceiling, "+
		"takeover-N, handover-N, idle-N; default "+strings.Join(namesOf(fullPlan), ","))
	contestant := flags.String("contestant", "", "the contestants, separated by commas, default all: "+strings.Join(contestantNames(), ","))
	seconds := flags.Int("seconds", 0, fmt.Sprintf("how long each is measured; default %d", fullSeconds))
	quick := flags.Bool("quick", false, fmt.Sprintf("a look: %s, %d s each", strings.Join(namesOf(quickPlan), ","), quickSeconds))
	cfg := config{}
	flags.StringVar(&cfg.out, "out", "", "the folder that results.txt, results.json and results.svg are written to; default none")
	flags.StringVar(&cfg.cpuProfile, "cpuprofile", "", "a file for the CPU profile of what is measured; with several, their names are appended")
	flags.BoolVar(&cfg.child, "child", false, "for the command itself: make one measurement and write it as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; bench -h lists them", flags.Arg(0))
	}
	cfg.scenarios, cfg.seconds = namesOf(fullPlan), fullSeconds
	if *quick {
		cfg.scenarios, cfg.seconds = namesOf(quickPlan), quickSeconds
	}
	if *scenario != "" {
		cfg.scenarios = strings.Split(*scenario, ",")
	}
	if *contestant != "" {
		cfg.contestants = strings.Split(*contestant, ",")
	}
	if *seconds > 0 {
		cfg.seconds = *seconds
	}
	if cfg.child {
		return measureOne(ctx, cfg, out)
	}
	return measureAll(ctx, cfg, out)
}
