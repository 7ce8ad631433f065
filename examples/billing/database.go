package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// database is where the accounts and their charges are: PostgreSQL, or a SQLite file that several processes
// share. Safe for concurrent use.
type database struct {
	*sql.DB

	stops *stops // where the demo holds an instance; nil outside of it
}

// frozenLimit is how long PostgreSQL lets a session sit in an open transaction and say nothing. A process that
// is frozen in the middle of one holds the row lock in fencing, and keeps the next attempt waiting for it.
const frozenLimit = 10 * time.Second

// openDatabase opens a database; it asks nothing of it yet.
func openDatabase(dsn string) (*database, error) {
	if !isPostgres(dsn) {
		// Each transaction takes the write lock when it begins: one that reads first and writes later could be
		// refused in the middle. A commit is on the disk before it is confirmed, as a checkpoint is.
		file := url.URL{Scheme: "file", Opaque: dsn, RawQuery: url.Values{
			"_txlock": {"immediate"},
			"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"},
		}.Encode()}
		db, err := sql.Open("sqlite", file.String())
		return &database{DB: db}, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = frozenLimit.String()
	return &database{DB: stdlib.OpenDB(*cfg)}, nil
}

func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// schema is the same for both. There is no unique key on (account, period) in charges, on purpose: with one, no
// account could be charged twice, and counting would prove nothing. Your own table should have one as well.
const schema = `
CREATE TABLE accounts (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL);

CREATE TABLE charges (
  account BIGINT NOT NULL, period TEXT NOT NULL, amount BIGINT NOT NULL,
  run TEXT NOT NULL, attempt BIGINT NOT NULL, token BIGINT NOT NULL);
CREATE INDEX charges_of ON charges (period, account);

CREATE TABLE fencing (
  job TEXT NOT NULL, period TEXT NOT NULL,
  token BIGINT NOT NULL,    -- the greatest fencing token that was seen: smaller ones are refused
  position BIGINT NOT NULL, -- the last account that was charged
  PRIMARY KEY (job, period));

-- Who did what. Nothing depends on it; the count at the end reads it.
CREATE TABLE attempts (
  token BIGINT PRIMARY KEY, period TEXT NOT NULL, run TEXT NOT NULL, attempt BIGINT NOT NULL, instance TEXT NOT NULL,
  checkpoint BIGINT NOT NULL,   -- from etcd, when it began
  position BIGINT NOT NULL,     -- from this database, when it began
  acknowledged BIGINT NOT NULL, -- its own last checkpoint that etcd has confirmed
  refused BIGINT NOT NULL);     -- its transactions that were refused since their token is old
`

// create makes the tables, and accounts that each owe between 5.00 and 19.99 a month.
func (db *database) create(ctx context.Context, accounts int64) error {
	return db.inTransaction(ctx, func(tx *sql.Tx) error {
		for statement := range strings.SplitSeq(schema, ";\n") {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("make the tables: %w", err)
			}
		}
		_, err := tx.ExecContext(ctx, `
			WITH RECURSIVE n(id) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT id + 1 FROM n WHERE id < $1)
			INSERT INTO accounts (id, amount) SELECT id, 500 + (id * 7919) % 1500 FROM n`, accounts)
		if err != nil {
			return fmt.Errorf("make the accounts: %w", err)
		}
		return nil
	})
}

// inTransaction commits what do did, all of it or, with an error, nothing.
func (db *database) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
