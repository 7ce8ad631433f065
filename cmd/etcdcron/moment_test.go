package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	apia, err := time.LoadLocation("Pacific/Apia") // which skipped a whole day
	require.NoError(t, err)
	for _, tc := range []struct {
		text    string
		zone    *time.Location
		want    []string
		skipped bool
	}{
		{"2026-11-30T09:00:00+08:00", berlin, []string{"2026-11-30T01:00:00Z"}, false},
		{"2026-11-30 09:00", berlin, []string{"2026-11-30T08:00:00Z"}, false},
		{"2026-11-30T09:00:30", time.UTC, []string{"2026-11-30T09:00:30Z"}, false},
		{"2026-07-01", berlin, []string{"2026-06-30T22:00:00Z"}, false},
		{"90m", berlin, []string{"2024-06-03T10:30:00Z"}, false},
		{"7d", berlin, []string{"2024-05-27T12:00:00Z"}, false},
		{"0s", berlin, []string{"2024-06-03T12:00:00Z"}, false},
		{"2026-10-25 02:30", berlin, []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, false}, // twice
		{"2026-03-29 02:30", berlin, []string{"2026-03-29T01:00:00Z"}, true},                          // never
		{"2026-03-29 03:00", berlin, []string{"2026-03-29T01:00:00Z"}, false},
		{"2011-12-30 12:00", apia, []string{"2011-12-30T10:00:00Z"}, true},
	} {
		got, err := moment(tc.text).in(tc.zone, noon)
		if tc.skipped {
			require.ErrorIs(t, err, errSkipped, tc.text)
		} else {
			require.NoError(t, err, tc.text)
		}
		texts := make([]string, len(got))
		for i, at := range got {
			texts[i] = at.UTC().Format(time.RFC3339)
		}
		require.Equal(t, tc.want, texts, tc.text)
	}
	for _, bad := range []string{"", "yesterday", "-2h", "-1d", "2026-13-01", "12:00", "99999999d"} {
		var m moment
		require.Error(t, m.Set(bad), bad)
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	at := noon.Add(-90 * time.Second)
	for format, want := range map[string]string{
		"": "1m30s ago", asRelative: "1m30s ago", asRFC3339: "2024-06-03T11:58:30Z", asUnix: "1717415910",
		asLocal: at.Local().Format("2006-01-02 15:04:05 -07:00"),
	} {
		require.Equal(t, want, when{now: noon, format: format}.text(at), format)
		require.Empty(t, when{now: noon, format: format}.text(time.Time{}))
		require.Empty(t, when{now: noon, format: format}.exact(time.Time{}))
	}
	require.Equal(t, "2024-06-03T11:58:30Z", when{now: noon}.exact(at))
	require.Equal(t, "2024-06-03T11:58:30Z, 1m30s ago", momentText(at, when{now: noon}))
}

func TestWords(t *testing.T) {
	t.Parallel()
	w := words[state.RunStatus]{allowed: []state.RunStatus{state.Failed, state.Missed}}
	require.NoError(t, w.Set("failed,missed"))
	require.Equal(t, "failed,missed", w.String())
	require.ErrorContains(t, w.Set("lost"), `"lost" is none of them: use failed or missed`)
	require.Error(t, w.Set(""))
}
