package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"syscall"
)

// fault is something that is done to the instance that charges, when the work is that far.
type fault struct {
	point   point
	account int64
	freeze  bool // SIGSTOP until somebody else has gone on, instead of kill -9
}

// anywhere is the point of a fault that looks only at how far the work is, not at what the instance does then.
const anywhere point = "anywhere"

// spread spreads faults over the accounts, at whole batches.
func spread(accounts, batch int64, faults ...fault) []fault {
	for i := range faults {
		faults[i].account = accounts * int64(i+1) / int64(len(faults)+1) / batch * batch
	}
	return faults
}

func (f fault) String() string {
	switch f.point {
	case inTransaction:
		return fmt.Sprintf("with the accounts up to %d charged, but not committed", f.account)
	case afterCommit:
		return fmt.Sprintf("with the accounts up to %d committed, but not in the checkpoint", f.account)
	case afterCheckpoint:
		return fmt.Sprintf("with the accounts up to %d committed and in the checkpoint", f.account)
	case beforeBatch:
		return fmt.Sprintf("about to charge the accounts after %d", f.account)
	default:
		return fmt.Sprintf("with the accounts up to %d charged", f.account)
	}
}

// strike waits until the work is where the fault is to happen, does it, and waits until it is overcome.
func (d *demo) strike(ctx context.Context, run string, f fault) error {
	if err := d.allow(max(d.allowed, f.account)); err != nil {
		return err
	}
	victim, err := d.victim(ctx, run, &f)
	if err != nil {
		return err
	}
	if err := d.allow(f.account); err != nil {
		return err
	}
	if f.freeze {
		return d.freeze(ctx, run, victim, f)
	}
	if err := victim.kill(); err != nil {
		return err
	}
	d.stops.died()
	p, err := d.startInstance()
	if err != nil {
		return err
	}
	d.sayf("%s is killed (kill -9), %s; %s is started in its place", victim.name, f, p.name)
	return d.awaitSuccessor(ctx, run, victim)
}

// allow lets the work go on for a few batches after an account, so that it cannot outrun the faults.
func (d *demo) allow(account int64) error {
	const few = 4
	d.allowed = max(d.allowed, account+few*d.batch)
	return d.stops.limit(d.allowed)
}

// victim is the instance that the fault is for, once it is where the fault is to happen. f is told where exactly.
func (d *demo) victim(ctx context.Context, run string, f *fault) (*process, error) {
	if f.point != anywhere {
		if err := d.stops.hold(f.point, f.account); err != nil {
			return nil, err
		}
	}
	var name string
	err := d.await(ctx, "the work does not get there", func() (ok bool, err error) {
		if f.point != anywhere {
			var account int64
			if name, account, ok, err = d.stops.held(); ok {
				f.account = account
			}
			return ok, err
		}
		a, position, err := d.newest(ctx, run)
		if name = a.instance; err != nil || name == "" || position < f.account {
			return false, err
		}
		f.account = position
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range d.instances {
		if p.name == name && p.alive() {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s is not an instance that runs", name)
}

// freeze stops the instance until its lock is lost and another has gone on as far as it can, and wakes it up.
func (d *demo) freeze(ctx context.Context, run string, victim *process, f fault) error {
	before, _, err := d.newest(ctx, run)
	if err != nil {
		return err
	}
	if err := victim.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.sayf("%s is frozen (SIGSTOP), %s", victim.name, f)
	if f.point == inTransaction { // it holds the row in fencing: whoever claims the run has to wait for it
		err = d.awaitClaim(ctx, run, before.attempt+1)
	} else {
		err = d.awaitProgress(ctx, run, victim, f.account+3*d.batch)
	}
	if err != nil {
		return err
	}
	if err := d.stops.release(); err != nil {
		return err
	}
	if err := victim.signal(syscall.SIGCONT); err != nil {
		return err
	}
	d.sayf("%s wakes up (SIGCONT)", victim.name)
	err = d.await(ctx, "it does not wake up", func() (bool, error) {
		_, _, held, err := d.stops.held()
		return !held, err
	})
	if err != nil {
		return err
	}
	switch f.point { //nolint:exhaustive // the others send nothing to the database
	case inTransaction:
		err = d.awaitSuccessor(ctx, run, victim)
	case beforeBatch:
		err = d.awaitRefusal(ctx, victim)
	}
	if err != nil {
		return err
	}
	interrupted := fmt.Appendf(nil, `"run interrupted","job":%q,"run":%q,"attempt":%d,`, jobName, run, before.attempt)
	return d.await(ctx, "etcdcron does not notice that the run is not its any more", func() (bool, error) {
		log, err := os.ReadFile(victim.log)
		return bytes.Contains(log, interrupted), err
	})
}

// awaitClaim waits until etcdcron has claimed an attempt.
func (d *demo) awaitClaim(ctx context.Context, id string, attempt int) error {
	return d.await(ctx, "nobody claims the run", func() (bool, error) {
		run, _, err := d.store.Run(ctx, jobName, id)
		if run.Attempt < attempt {
			return false, err
		}
		d.sayf("attempt %d is claimed, with token %d, and waits for the transaction under way", run.Attempt, run.FencingToken)
		return true, err
	})
}

// awaitProgress waits until somebody else has taken the run over and charged the accounts up to the given one.
func (d *demo) awaitProgress(ctx context.Context, run string, lost *process, account int64) error {
	if err := d.awaitSuccessor(ctx, run, lost); err != nil {
		return err
	}
	return d.await(ctx, "nobody goes on", func() (bool, error) {
		_, position, err := d.newest(ctx, run)
		return position >= min(account, d.accounts), err
	})
}

// awaitSuccessor waits until somebody else goes on with the run.
func (d *demo) awaitSuccessor(ctx context.Context, run string, lost *process) error {
	var a attempted
	err := d.await(ctx, "nobody takes the run over", func() (ok bool, err error) {
		a, _, err = d.newest(ctx, run)
		return a.instance != lost.name, err
	})
	if err != nil {
		return err
	}
	d.sayf("%s takes the run over: attempt %d, checkpoint %d, in the database %d", a.instance, a.attempt, a.checkpoint, a.position)
	return nil
}

// awaitRefusal waits until the database has refused what an instance sent when it woke up.
func (d *demo) awaitRefusal(ctx context.Context, late *process) error {
	return d.await(ctx, "its late write is not refused", func() (bool, error) {
		all, err := d.db.attempts(ctx, demoPeriod)
		for _, a := range all {
			if a.instance == late.name && a.refused > 0 {
				d.sayf("%s charges with token %d: refused, %d has been seen", a.instance, a.token, all[len(all)-1].token)
				return true, err
			}
		}
		return false, err
	})
}

// newest is the newest attempt of a run, with no name when there is none yet, and how far the work is.
func (d *demo) newest(ctx context.Context, run string) (a attempted, position int64, err error) {
	all, err := d.db.attempts(ctx, demoPeriod)
	if err != nil || len(all) == 0 || all[len(all)-1].run != run {
		return a, 0, err
	}
	a = all[len(all)-1]
	return a, max(a.position, a.last), nil
}
