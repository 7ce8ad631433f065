package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const period = "2026-11"

// newDatabase is one with accounts; with BILLING_DSN in PostgreSQL.
func newDatabase(t *testing.T, accounts int64) *database {
	t.Helper()
	d := &demo{demoConfig: demoConfig{dsn: os.Getenv("BILLING_DSN"), accounts: accounts}, dir: t.TempDir()}
	drop, err := d.makeDatabase(t.Context())
	require.NoError(t, err)
	t.Cleanup(drop)
	return d.db
}

func claimOf(attempt int, token int64) claim {
	return claim{period: period, run: "r", attempt: attempt, token: token, instance: "i"}
}

func TestAnAttemptGoesOnWhereTheLastOneEnded(t *testing.T) {
	db := newDatabase(t, 25)
	first := claimOf(1, 7)
	position, err := db.takeOver(t.Context(), first, 0)
	require.NoError(t, err)
	require.Zero(t, position)
	last, charged, err := db.chargeBatch(t.Context(), first, position, 10)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 10}, []int64{last, charged})

	second := claimOf(2, 9)
	position, err = db.takeOver(t.Context(), second, 0)
	require.NoError(t, err)
	require.EqualValues(t, 10, position)
	for _, want := range []int64{10, 5, 0} {
		position, charged, err = db.chargeBatch(t.Context(), second, position, 10)
		require.NoError(t, err)
		require.Equal(t, want, charged)
	}
	require.EqualValues(t, 25, position)
	got, err := db.count(t.Context(), period)
	require.NoError(t, err)
	require.EqualValues(t, 25, got.once)
	require.NoError(t, got.faults())
}

func TestAnOldTokenIsRefused(t *testing.T) {
	db := newDatabase(t, 30)
	old, newer := claimOf(1, 7), claimOf(2, 9)
	position, err := db.takeOver(t.Context(), old, 0)
	require.NoError(t, err)
	position, _, err = db.chargeBatch(t.Context(), old, position, 10)
	require.NoError(t, err)

	_, err = db.takeOver(t.Context(), newer, 10)
	require.NoError(t, err)
	_, _, err = db.chargeBatch(t.Context(), old, position, 10)
	require.ErrorIs(t, err, errOldToken, "from the moment of the take-over on, before the newer one has charged")
	_, err = db.takeOver(t.Context(), old, 10)
	require.ErrorIs(t, err, errOldToken)
	_, _, err = db.chargeBatch(t.Context(), newer, position, 10)
	require.NoError(t, err)
	_, _, err = db.chargeBatch(t.Context(), old, position, 10)
	require.ErrorIs(t, err, errOldToken)

	got, err := db.count(t.Context(), period)
	require.NoError(t, err)
	require.EqualValues(t, 20, got.once)
	require.Zero(t, got.more)
	other := claimOf(1, 8)
	other.period = "2026-12"
	_, err = db.takeOver(t.Context(), other, 0)
	require.NoError(t, err, "each period has its own")
}

func TestABatchIsChargedAsAWholeOrNotAtAll(t *testing.T) {
	db := newDatabase(t, 20)
	c := claimOf(1, 7)
	_, err := db.takeOver(t.Context(), c, 0)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `ALTER TABLE fencing RENAME COLUMN position TO gone`)
	require.NoError(t, err)
	_, _, err = db.chargeBatch(t.Context(), c, 0, 10)
	require.ErrorContains(t, err, "position", "the charges were written, the position cannot be")
	_, err = db.ExecContext(t.Context(), `ALTER TABLE fencing RENAME COLUMN gone TO position`)
	require.NoError(t, err)

	got, err := db.count(t.Context(), period)
	require.NoError(t, err)
	require.EqualValues(t, 20, got.never)
	position, err := db.takeOver(t.Context(), claimOf(2, 8), 0)
	require.NoError(t, err)
	require.Zero(t, position)
}

// While an older attempt is in the middle of a transaction, a newer one waits, and then sees what came of it.
func TestATakeOverWaitsForTheTransactionUnderWay(t *testing.T) {
	db := newDatabase(t, 20)
	old, newer := claimOf(1, 7), claimOf(2, 9)
	_, err := db.takeOver(t.Context(), old, 0)
	require.NoError(t, err)

	var taking sync.WaitGroup
	err = db.inTransaction(t.Context(), func(tx *sql.Tx) error {
		if err := fence(t.Context(), tx, old); err != nil {
			return err
		}
		taking.Go(func() {
			position, err := db.takeOver(t.Context(), newer, 0)
			if err != nil || position != 10 {
				t.Errorf("taken over at %d, %v", position, err)
			}
		})
		_, err := tx.ExecContext(t.Context(), `UPDATE fencing SET position = 10 WHERE job = $1 AND period = $2`, jobName, period)
		return err
	})
	require.NoError(t, err)
	taking.Wait()
}

func TestTheCountFindsWhatIsWrong(t *testing.T) {
	db := newDatabase(t, 3)
	charge := func(account, token int64) {
		_, err := db.ExecContext(t.Context(), `
			INSERT INTO charges (account, period, amount, run, attempt, token)
			SELECT id, '2026-11', amount, 'r', 1, CAST($1 AS BIGINT) FROM accounts WHERE id = $2`, token, account)
		require.NoError(t, err)
	}
	charge(1, 7)
	charge(2, 7)
	charge(2, 9)
	got, err := db.count(t.Context(), period)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 1}, []int64{got.never, got.once, got.more})
	require.ErrorContains(t, got.faults(), "1 accounts were charged more than once")

	got = tally{attempts: []attempted{
		{claim: claimOf(1, 7), acknowledged: 20},
		{claim: claimOf(2, 9), checkpoint: 10, position: 30, charged: 10, first: 21},
	}}
	require.ErrorContains(t, got.faults(), "was given checkpoint 10, but 20 had been acknowledged")
	require.ErrorContains(t, got.faults(), "began after account 30, and charged 21")
}

func TestWhereTheDatabaseIs(t *testing.T) {
	require.True(t, isPostgres("postgres://localhost/billing"))
	require.False(t, isPostgres(filepath.Join(t.TempDir(), "postgres.db")))
	_, err := openDatabase("postgres://localhost:none/billing")
	require.Error(t, err)
}
