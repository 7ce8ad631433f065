// Command billing charges every account of a service once a month, from a service that runs in several copies.
// It is the example of docs/billing.md: etcdcron decides who charges and where to go on, and the SQL database
// refuses whoever is late. `billing demo` kills and freezes the copies in the middle of it, and counts.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "billing:", err)
		os.Exit(1)
	}
}

const usage = `usage: billing COMMAND [flags]

  init      make the tables and the accounts
  instance  one copy of the service, on an etcd
  count     count the charges of a period
  demo      all of it, with kill -9 and SIGSTOP in the middle

its flags: billing COMMAND -h`

// command does one of the commands.
func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("billing "+args[0], flag.ContinueOnError)
	dsn := flags.String("dsn", cmp.Or(os.Getenv("BILLING_DSN"), "billing.db"),
		"the database: postgres://…, or a file for SQLite; also BILLING_DSN")
	accounts := flags.Int64("accounts", 10_000, "how many accounts init and demo make")
	lastMonth, _ := periodOf("", time.Now().UTC())
	period := flags.String("period", lastMonth, "the month that count counts")
	var cfg instanceConfig
	endpoints := flags.String("endpoints", "127.0.0.1:2379", "of etcd, separated by commas")
	flags.StringVar(&cfg.name, "name", fmt.Sprintf("billing-%d", os.Getpid()), "of this instance")
	flags.Int64Var(&cfg.batch, "batch", 100, "accounts in one transaction")
	flags.DurationVar(&cfg.pause, "pause", 0, "between two batches")
	flags.DurationVar(&cfg.lockTTL, "lock-ttl", 30*time.Second, "how long the job stays locked after a crash")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag; billing %s -h lists them", flags.Arg(0), args[0])
	}
	if args[0] == "demo" {
		return showDemo(ctx, *dsn, *accounts, out)
	}

	db, err := openDatabase(*dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	switch args[0] {
	case "init":
		return db.create(ctx, *accounts)
	case "instance":
		cfg.endpoints = strings.Split(*endpoints, ",")
		return runInstance(ctx, db, cfg)
	case "count":
		t, err := db.count(ctx, *period)
		if err != nil {
			return err
		}
		return t.print(out)
	default:
		return errors.New(usage)
	}
}
