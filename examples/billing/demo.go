package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest" //nolint:depguard // the demo is a test to look at: its etcd lives as long as it does
)

const (
	demoPeriod    = "2026-11"
	demoInstances = 3
	demoLockTTL   = 3 * time.Second // the shortest there is, so that nobody waits long for a dead instance

	// patience bounds every wait; nothing is expected to take nearly as long.
	patience = 60 * time.Second
)

// showDemo is `billing demo`. It is slow enough for each attempt to last longer than the lock's TTL.
func showDemo(ctx context.Context, dsn string, accounts int64, out io.Writer) error {
	const batches = 100
	if accounts < batches {
		return fmt.Errorf("%d accounts are too few to see anything; use at least %d", accounts, batches)
	}
	batch := accounts / batches
	t, _, err := playDemo(ctx, demoConfig{
		dsn: dsn, accounts: accounts, batch: batch, pause: 150 * time.Millisecond, out: out,
		faults: spread(
			accounts, batch,
			fault{point: anywhere},
			fault{point: afterCommit},
			fault{point: beforeBatch, freeze: true},
		),
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	return t.print(out)
}

type demoConfig struct {
	dsn      string // of PostgreSQL; anything else is SQLite, in a temporary file
	accounts int64
	batch    int64
	pause    time.Duration // between two batches
	faults   []fault
	out      io.Writer
}

// demo is a service with an etcd and a database, and somebody who is not good to it.
type demo struct {
	demoConfig

	dir       string
	db        *database
	endpoints string
	store     *state.Store
	stops     *stops
	allowed   int64 // the account that the work may get to before the next fault
	instances []*process
	began     time.Time
}

// playDemo starts everything, asks twice to charge the accounts for the same month while the faults happen, ends
// everything, and returns what the database says then, and what etcdcron has on record of the two runs.
func playDemo(ctx context.Context, cfg demoConfig) (t tally, runs []state.Run, err error) {
	d := &demo{demoConfig: cfg, began: time.Now()}
	if d.dir, err = os.MkdirTemp("", "billing-demo-"); err != nil {
		return t, nil, err
	}
	defer os.RemoveAll(d.dir)
	d.stops = &stops{dir: d.dir, instance: "demo"}
	dropDatabase, err := d.makeDatabase(ctx)
	if err != nil {
		return t, nil, err
	}
	defer dropDatabase()
	etcd, err := etcdtest.Run()
	if err != nil {
		return t, nil, err
	}
	defer etcd.Close()
	d.endpoints = strings.Join(etcd.Endpoints(), ",")
	client, err := clientv3.New(clientv3.Config{Endpoints: etcd.Endpoints()})
	if err != nil {
		return t, nil, err
	}
	defer client.Close()
	keys, err := state.NewKeys("", namespace)
	if err != nil {
		return t, nil, err
	}
	d.store = state.NewStore(client, keys, state.StoreConfig{})

	defer d.killAll()
	if runs, err = d.play(ctx); err != nil {
		if ctx.Err() != nil { // somebody has had enough
			return t, nil, context.Cause(ctx)
		}
		for _, p := range d.instances {
			err = fmt.Errorf("%w\n--- the last words of %s\n%s", err, p.name, p.lastWords())
		}
		return t, nil, err
	}
	t, err = d.db.count(ctx, demoPeriod)
	return t, runs, err
}

// makeDatabase makes the tables, in PostgreSQL in a schema of their own.
func (d *demo) makeDatabase(ctx context.Context) (drop func(), err error) {
	dropSchema := func() {}
	if !isPostgres(d.dsn) {
		d.dsn = filepath.Join(d.dir, "billing.db")
	} else if dropSchema, err = d.makeSchema(ctx); err != nil {
		return nil, err
	}
	if d.db, err = openDatabase(d.dsn); err != nil {
		dropSchema()
		return nil, err
	}
	drop = func() {
		_ = d.db.Close()
		dropSchema()
	}
	if err := d.db.create(ctx, d.accounts); err != nil {
		drop()
		return nil, err
	}
	return drop, nil
}

// makeSchema makes a schema in PostgreSQL, and has dsn lead into it.
func (d *demo) makeSchema(ctx context.Context) (drop func(), err error) {
	dsn, err := url.Parse(d.dsn)
	if err != nil {
		return nil, err
	}
	db, err := openDatabase(d.dsn)
	if err != nil {
		return nil, err
	}
	schema := "billing_demo_" + strings.ToLower(rand.Text()[:8])
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	query := dsn.Query()
	query.Set("search_path", schema)
	dsn.RawQuery = query.Encode()
	d.dsn = dsn.String()
	return func() {
		_, _ = db.Exec("DROP SCHEMA " + schema + " CASCADE") //nolint:noctx // also when ctx has ended
		_ = db.Close()
	}, nil
}

func (d *demo) play(ctx context.Context) (runs []state.Run, err error) {
	kind := "SQLite"
	if isPostgres(d.dsn) {
		kind = "PostgreSQL"
	}
	fmt.Fprintf(d.out, "%d accounts in %s, %d instances, lock TTL %s\n\n", d.accounts, kind, demoInstances, demoLockTTL)
	if err := d.stops.limit(0); err != nil { // one batch, until the first fault is prepared
		return nil, err
	}
	for range demoInstances {
		if _, err := d.startInstance(); err != nil {
			return nil, err
		}
	}
	for i, faults := range [][]fault{d.faults, nil} {
		id, err := d.ask(ctx)
		if err != nil {
			return nil, err
		}
		d.sayf("run %s is asked for, to charge for %s%s", id, demoPeriod, [...]string{"", " once more"}[i])
		for _, f := range faults {
			if err := d.strike(ctx, id, f); err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
		}
		if err := d.stops.limit(math.MaxInt64); err != nil {
			return nil, err
		}
		run, err := d.success(ctx, id)
		if err != nil {
			return nil, err
		}
		d.sayf("run %s has succeeded, attempts: %d", id, run.Attempt)
		runs = append(runs, run)
	}
	for _, p := range d.instances {
		if p.killed {
			continue
		}
		if err := p.stop(patience); err != nil {
			return nil, fmt.Errorf("stop %s: %w", p.name, err)
		}
	}
	return runs, nil
}

// startInstance starts another instance; its name is new.
func (d *demo) startInstance() (*process, error) {
	p, err := startProcess(
		fmt.Sprintf("billing-%d", len(d.instances)+1), d.dir,
		[]string{stopsVariable + "=" + d.dir, "BILLING_DSN=" + d.dsn},
		"--endpoints", d.endpoints, "--lock-ttl", demoLockTTL.String(),
		"--batch", strconv.FormatInt(d.batch, 10), "--pause", d.pause.String(),
	)
	if err == nil {
		d.instances = append(d.instances, p)
	}
	return p, err
}

// ask asks for a run, as `etcdcron trigger` does, and returns its id.
func (d *demo) ask(ctx context.Context) (run string, err error) {
	err = d.await(ctx, "the job is not there", func() (bool, error) {
		r, err := d.store.Submit(ctx, state.Request{
			Kind: state.AskTrigger, Job: jobName, By: "demo", Args: map[string]string{"period": demoPeriod},
		})
		run = r.ID
		if errors.Is(err, state.ErrNotFound) { // nobody has been elected yet
			return false, nil
		}
		return err == nil, err
	})
	return run, err
}

// success waits until a run has succeeded.
func (d *demo) success(ctx context.Context, id string) (run state.Run, err error) {
	err = d.await(ctx, "the run does not end", func() (bool, error) {
		run, _, err = d.store.Run(ctx, jobName, id)
		switch {
		case errors.Is(err, state.ErrNotFound): // asked for, not begun
			return false, nil
		case err != nil || !run.Status.Final():
			return false, err
		case run.Status != state.Succeeded:
			return false, fmt.Errorf("it is %s: %s %s", run.Status, run.Reason, run.Error)
		}
		return true, nil
	})
	return run, err
}

// await looks until ok says yes, for as long as all instances that should be alive are.
func (d *demo) await(ctx context.Context, otherwise string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		for _, p := range d.instances {
			if !p.killed && !p.alive() {
				return fmt.Errorf("%s has ended by itself: %w", p.name, p.err)
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, ctx.Err())
		}
	}
}

func (d *demo) killAll() {
	for _, p := range d.instances {
		_ = p.kill() // also one that is frozen
	}
}

func (d *demo) sayf(format string, args ...any) {
	fmt.Fprintf(d.out, "%5.1f s  "+format+"\n", append([]any{time.Since(d.began).Seconds()}, args...)...)
}
