package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// tally is what the database says about a period.
type tally struct {
	period                  string
	accounts                int64
	never, once, more       int64 // accounts that were charged so often
	owed, charged           int64 // in cents
	attempts                []attempted
	refused, uncheckpointed int64
}

// attempted is what one attempt did.
type attempted struct {
	claim

	checkpoint, position int64 // where it began, by etcd and by the database
	acknowledged         int64 // its last checkpoint that etcd confirmed; 0 for none
	refused              int64
	first, last, charged int64 // accounts; 0 for none
}

// count reads it all from the charges themselves; what the attempts say of themselves is only told beside it.
func (db *database) count(ctx context.Context, period string) (tally, error) {
	t := tally{period: period}
	err := db.QueryRowContext(ctx, `
		SELECT COUNT(*), COALESCE(SUM(CASE WHEN n = 0 THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN n = 1 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN n > 1 THEN 1 ELSE 0 END), 0), COALESCE(SUM(owed), 0), COALESCE(SUM(paid), 0)
		FROM (
			SELECT a.id, a.amount AS owed, COUNT(c.account) AS n, COALESCE(SUM(c.amount), 0) AS paid
			FROM accounts a LEFT JOIN charges c ON c.account = a.id AND c.period = $1
			GROUP BY a.id, a.amount
		) AS of_account`, period).Scan(&t.accounts, &t.never, &t.once, &t.more, &t.owed, &t.charged)
	if err != nil {
		return t, fmt.Errorf("count: %w", err)
	}
	if t.attempts, err = db.attempts(ctx, period); err != nil {
		return t, err
	}
	for _, a := range t.attempts {
		t.refused += a.refused
		if a.attempt > 1 && a.position > a.checkpoint {
			t.uncheckpointed++
		}
	}
	return t, nil
}

// attempts are those of a period, the first one first.
func (db *database) attempts(ctx context.Context, period string) ([]attempted, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT a.run, a.attempt, a.token, a.instance, a.checkpoint, a.position, a.acknowledged, a.refused,
			COALESCE(MIN(c.account), 0), COALESCE(MAX(c.account), 0), COUNT(c.account)
		FROM attempts a LEFT JOIN charges c ON c.token = a.token AND c.period = a.period
		WHERE a.period = $1
		GROUP BY a.run, a.attempt, a.token, a.instance, a.checkpoint, a.position, a.acknowledged, a.refused
		ORDER BY a.token`, period)
	if err != nil {
		return nil, fmt.Errorf("attempts: %w", err)
	}
	defer rows.Close()
	var all []attempted
	for rows.Next() {
		a := attempted{claim: claim{period: period}}
		if err := rows.Scan(&a.run, &a.attempt, &a.token, &a.instance, &a.checkpoint, &a.position, &a.acknowledged, &a.refused,
			&a.first, &a.last, &a.charged); err != nil {
			return nil, fmt.Errorf("attempts: %w", err)
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// faults is what is wrong; nil when all is well.
func (t *tally) faults() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if t.never > 0 {
		fault("%d accounts were never charged", t.never)
	}
	if t.more > 0 {
		fault("%d accounts were charged more than once", t.more)
	}
	if t.owed != t.charged {
		fault("%d cents are owed, %d were charged", t.owed, t.charged)
	}
	acknowledged := map[string]int64{} // of a run, by any attempt so far
	attempt := map[string]int{}
	for _, a := range t.attempts {
		if a.attempt <= attempt[a.run] {
			fault("attempt %d of run %s has a greater token than attempt %d", a.attempt, a.run, attempt[a.run])
		}
		if a.checkpoint < acknowledged[a.run] {
			fault("attempt %d of run %s was given checkpoint %d, but %d had been acknowledged",
				a.attempt, a.run, a.checkpoint, acknowledged[a.run])
		}
		if a.charged > 0 && a.first <= a.position {
			fault("attempt %d of run %s began after account %d, and charged %d", a.attempt, a.run, a.position, a.first)
		}
		acknowledged[a.run] = max(acknowledged[a.run], a.acknowledged)
		attempt[a.run] = a.attempt
	}
	return errors.Join(faults...)
}

// print writes the account of a period; its error is what is wrong with it.
func (t *tally) print(out io.Writer) error {
	for rest := t.attempts; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(a attempted) bool { return a.run != rest[0].run })
		if n < 0 {
			n = len(rest)
		}
		if err := printRun(out, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	fmt.Fprintf(out, "late writes refused by the fencing token: %d\n", t.refused)
	fmt.Fprintf(out, "batches that were committed, but not in the checkpoint when the next attempt began: %d\n", t.uncheckpointed)
	fmt.Fprintf(out, "accounts never charged: %d, more than once: %d; owed %s, charged %s\n", t.never, t.more, money(t.owed), money(t.charged))
	if err := t.faults(); err != nil {
		return fmt.Errorf("the count is wrong:\n%w", err)
	}
	_, err := fmt.Fprintf(out, "%d accounts, each charged exactly once\n", t.accounts)
	return err
}

// printRun writes what each attempt of a run began with, and did.
func printRun(out io.Writer, attempts []attempted) error {
	fmt.Fprintf(out, "run %s\n", attempts[0].run)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "attempt\tinstance\ttoken\tcheckpoint\tdatabase\tcharged\taccounts\trefused\t")
	for _, a := range attempts {
		accounts := "-"
		if a.charged > 0 {
			accounts = fmt.Sprintf("%d-%d", a.first, a.last)
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t\n",
			a.attempt, a.instance, a.token, a.checkpoint, a.position, a.charged, accounts, a.refused)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
