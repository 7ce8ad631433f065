package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

var rounds = flag.Int("rounds", 1, "how often TestEveryAccountIsChargedOnce does it all, one after the other")

// TestMain has the processes that a test starts, which are this very program, be instances.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "instance" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Whatever happens to the instances, and wherever, each account is charged exactly once. With BILLING_DSN it
// is done in PostgreSQL.
func TestEveryAccountIsChargedOnce(t *testing.T) {
	for round := range *rounds {
		t.Run(fmt.Sprintf("round %d", round+1), func(t *testing.T) {
			out := &strings.Builder{}
			began := time.Now()
			faults := shuffledFaults(t)
			got, runs, err := playDemo(t.Context(), demoConfig{
				dsn: os.Getenv("BILLING_DSN"), accounts: 10_000, batch: 100, pause: 20 * time.Millisecond, faults: faults, out: out,
			})
			t.Logf("%.1f s\n%s", time.Since(began).Seconds(), out)
			require.NoError(t, err)
			out.Reset()
			err = got.print(out)
			t.Log("\n" + out.String())
			require.NoError(t, err)
			requireExactly(t, &got, runs, len(faults))
		})
	}
}

// shuffledFaults are all there are, in another order and at other accounts each time.
func shuffledFaults(t *testing.T) []fault {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	faults := []fault{
		{point: anywhere},
		{point: inTransaction},
		{point: afterCommit},
		{point: afterCheckpoint},
		{point: beforeBatch, freeze: true},
		{point: inTransaction, freeze: true},
		{point: afterCommit, freeze: true},
	}
	r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	faults = spread(10_000, 100, faults...)
	for i := range faults {
		faults[i].account += r.Int64N(6) * 100 // they are 12 batches apart
	}
	return faults
}

// requireExactly checks what is beyond the count: nothing happened that did not have to.
func requireExactly(t *testing.T, got *tally, runs []state.Run, faults int) {
	t.Helper()
	require.EqualValues(t, 10_000, got.once)
	require.EqualValues(t, 1, got.refused, "the write of the instance that was frozen before its batch")
	require.GreaterOrEqual(t, got.uncheckpointed, int64(2), "one kill and one freeze after a commit")
	require.LessOrEqual(t, got.uncheckpointed, int64(4), "and perhaps the freeze before a commit, and the kill anywhere")

	require.Len(t, runs, 2)
	require.Equal(t, faults+1, runs[0].Attempt)
	require.Equal(t, faults, runs[0].Recoveries)
	require.Zero(t, runs[0].Retries)
	require.EqualValues(t, 10_000, runs[0].Progress.Done)
	require.EqualValues(t, 10_000, runs[0].Progress.Total)
	require.Equal(t, 1, runs[1].Attempt)

	require.Len(t, got.attempts, faults+2)
	for i, a := range got.attempts[:faults] {
		recorded := runs[0].Attempts[i]
		require.Equal(t, recorded.Attempt, a.attempt)
		require.Equal(t, recorded.FencingToken, a.token)
		require.Truef(t, strings.HasPrefix(recorded.Instance, a.instance+"-"), "%s is recorded as %s", a.instance, recorded.Instance)
		require.Equal(t, state.ReasonInstanceLost, recorded.Reason)
	}
	for i, a := range got.attempts[1 : faults+1] {
		before := got.attempts[i]
		require.GreaterOrEqual(t, a.checkpoint, before.acknowledged)
		require.LessOrEqual(t, a.position-a.checkpoint, int64(100), "no more than one batch is not in the checkpoint")
		require.Equal(t, max(before.position, before.last), a.position, "it goes on where the last one ended")
	}
	again := got.attempts[faults+1]
	require.Equal(t, runs[1].ID, again.run)
	require.Zero(t, again.charged)
}

func TestThePeriodOfARun(t *testing.T) {
	at := time.Date(2027, 1, 1, 3, 0, 0, 0, time.UTC)
	period, err := periodOf("", at)
	require.NoError(t, err)
	require.Equal(t, "2026-12", period)
	period, err = periodOf("2026-11", at)
	require.NoError(t, err)
	require.Equal(t, "2026-11", period)
	_, err = periodOf("november", at)
	require.ErrorContains(t, err, "give a month")
}

func TestTheJobIsSound(t *testing.T) {
	require.NoError(t, (&biller{}).job(30*time.Second).Check())
	require.NoError(t, (&biller{}).job(demoLockTTL).Check())
}

// What docs/billing.md quotes is what is here.
func TestTheDocsQuoteTheCode(t *testing.T) {
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	quoted := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, page := range []string{"billing.md", "billing.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		require.NoError(t, err)
		blocks := quoted.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks)
		for _, block := range blocks {
			require.Contains(t, code.String(), block[1], page)
		}
	}
}

func TestCommandsByHand(t *testing.T) {
	dsn := t.TempDir() + "/billing.db"
	out := &strings.Builder{}
	require.NoError(t, command(t.Context(), []string{"init", "--dsn", dsn, "--accounts", "7"}, out))
	require.ErrorContains(t, command(t.Context(), []string{"count", "--dsn", dsn}, out), "7 accounts were never charged")
	require.ErrorContains(t, command(context.Background(), nil, out), "usage")
	require.ErrorContains(t, command(context.Background(), []string{"cuont"}, out), "usage")
	require.ErrorContains(t, command(context.Background(), []string{"demo", "--accounts", "9"}, out), "too few")
}
