package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// claim is in whose name something is written: one attempt of a run, and its fencing token.
type claim struct {
	period   string
	run      string
	attempt  int
	token    int64
	instance string
}

// errOldToken is a transaction that was refused: another attempt, with a newer token, has begun since.
var errOldToken = errors.New("refused by the database: the fencing token is old")

// fence is the first statement of every transaction that charges. It refuses a token that is smaller than the
// greatest one seen, and locks the row until the transaction ends: no newer attempt can get in between.
func fence(ctx context.Context, tx *sql.Tx, c claim) error {
	res, err := tx.ExecContext(ctx, `
		UPDATE fencing SET token = $1 WHERE job = $2 AND period = $3 AND token <= $1`, c.token, jobName, c.period)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("%w: %d", errOldToken, c.token)
}

// takeOver makes the period this attempt's own and returns the last account that was charged. When it has
// returned, nobody with an older token can write any more, so that the position is the attempt's alone to move.
func (db *database) takeOver(ctx context.Context, c claim, checkpoint int64) (position int64, err error) {
	err = db.inTransaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO fencing (job, period, token, position) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING`,
			jobName, c.period); err != nil {
			return err
		}
		if err := fence(ctx, tx, c); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `
			SELECT position FROM fencing WHERE job = $1 AND period = $2`, jobName, c.period).Scan(&position); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO attempts (token, period, run, attempt, instance, checkpoint, position, acknowledged, refused)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0)`,
			c.token, c.period, c.run, c.attempt, c.instance, checkpoint, position)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("take over period %s: %w", c.period, err)
	}
	return position, nil
}

// batchLimit bounds one transaction. It is less than the grace that the job has with its default lock TTL.
const batchLimit = 5 * time.Second

// chargeBatch charges the next accounts after position, and moves the position: in one transaction, so that
// there is no crash after which the two disagree. It returns the last account that was charged, and how many
// were; none when all are.
func (db *database) chargeBatch(ctx context.Context, c claim, position, size int64) (last, charged int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchLimit)
	defer cancel()
	err = db.inTransaction(ctx, func(tx *sql.Tx) error {
		if err := fence(ctx, tx, c); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `
			SELECT COALESCE(MAX(id), $1) FROM (SELECT id FROM accounts WHERE id > $1 ORDER BY id LIMIT $2) AS batch`,
			position, size).Scan(&last); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `
			INSERT INTO charges (account, period, amount, run, attempt, token)
			SELECT id, CAST($1 AS TEXT), amount, CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS BIGINT)
			FROM accounts WHERE id > $5 AND id <= $6`, c.period, c.run, c.attempt, c.token, position, last)
		if err != nil {
			return err
		}
		if charged, err = res.RowsAffected(); err != nil {
			return err
		}
		db.stops.reach(inTransaction, last)
		_, err = tx.ExecContext(ctx, `
			UPDATE fencing SET position = $1 WHERE job = $2 AND period = $3`, last, jobName, c.period)
		return err
	})
	if err != nil {
		return position, 0, fmt.Errorf("charge the accounts after %d: %w", position, err)
	}
	return last, charged, nil
}

// howFar is how many accounts have been charged when the given one was the last, and how many there are.
func (db *database) howFar(ctx context.Context, last int64) (done, total int64, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT COUNT(*), COALESCE(SUM(CASE WHEN id <= $1 THEN 1 ELSE 0 END), 0) FROM accounts`, last).Scan(&total, &done)
	return done, total, err
}

// acknowledged notes a checkpoint that etcd has confirmed. It is for the count at the end.
func (db *database) acknowledged(ctx context.Context, c claim, checkpoint int64) error {
	_, err := db.ExecContext(ctx, `UPDATE attempts SET acknowledged = $1 WHERE token = $2`, checkpoint, c.token)
	return err
}

// refused notes a transaction that was refused. It is for the count at the end.
func (db *database) refused(ctx context.Context, c claim) error {
	_, err := db.ExecContext(ctx, `UPDATE attempts SET refused = refused + 1 WHERE token = $1`, c.token)
	return err
}
