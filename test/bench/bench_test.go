package main

import (
	"bytes"
	"encoding/xml"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	// These tests wait for the clock, not for a core. -parallel overrides it.
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Each contestant in each scenario, small, short and all at once: the figures mean nothing here.
func TestEveryScenario(t *testing.T) {
	r := report{Seconds: 2}
	var mu sync.Mutex
	t.Run("measure", func(t *testing.T) {
		for _, name := range []string{"burst-20", "spread-120", "blocked-5", "ceiling", "takeover-120", "handover-20", "idle-20"} {
			who, err := contestantsFor(name, nil)
			require.NoError(t, err)
			for _, contestant := range who {
				t.Run(name+" "+contestant, func(t *testing.T) {
					t.Parallel()
					res, err := measureHere(t.Context(), config{seconds: r.Seconds}, name, contestant)
					require.NoError(t, err)
					switch s, _ := parseScenario(name); s.kind {
					case "idle":
						require.Zero(t, res.Revisions)
					case ceiling:
						require.Positive(t, res.RunsPerSecond)
					default:
						require.Positive(t, res.Delivered)
						require.GreaterOrEqual(t, res.Delay.P99, res.Delay.P50)
					}
					mu.Lock()
					defer mu.Unlock()
					r.Results = append(r.Results, res)
				})
			}
		}
	})
	slices.SortStableFunc(r.Results, func(a, b result) int { return strings.Compare(a.Scenario, b.Scenario) })
	var text, picture bytes.Buffer
	require.NoError(t, r.text(&text))
	t.Log(text.String())
	require.NoError(t, r.plot(&picture))
	require.Equal(t, 2*4, strings.Count(picture.String(), `fill="none"`), "a line for each contestant in both charts")
	require.NoError(t, xml.Unmarshal(picture.Bytes(), new(struct{})))
}

func TestNames(t *testing.T) {
	for _, name := range []string{"burst", "burst-0", "burst-1000000", "nothing-10"} {
		_, err := parseScenario(name)
		require.Error(t, err, name)
	}
	_, err := contestantsFor("burst-10", []string{"nobody"})
	require.Error(t, err)
	who, err := contestantsFor("burst-10000", []string{ours, naive, ceiling})
	require.NoError(t, err)
	require.Equal(t, []string{ours, naive}, who)
	require.Equal(t, 42, jobIndex(jobName(42)))
	require.Equal(t, -1, jobIndex("blocked"))
}

func TestExpected(t *testing.T) {
	from := time.Date(2026, 11, 30, 12, 0, 58, 0, time.UTC)
	require.Equal(t, 300, scenario{"burst", 100}.expected(from, 3))
	require.Equal(t, 1+1+2+2, scenario{"spread", 62}.expected(from, 4))
}

func TestPercentile(t *testing.T) {
	require.Zero(t, percentile(nil, 0.99))
	delays := make([]time.Duration, 100)
	for i := range delays {
		delays[i] = time.Duration(i)
	}
	require.EqualValues(t, 50, percentile(delays, 0.5))
	require.EqualValues(t, 99, percentile(delays, 0.99))
	require.EqualValues(t, 99, percentile(delays, 1))
}

func TestLedger(t *testing.T) {
	var l ledger
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	l.push(first)
	l.push(first)
	l.push(second)
	require.Equal(t, first, l.pop())
	require.Equal(t, second, l.pop())
	require.True(t, l.pop().IsZero())
}
