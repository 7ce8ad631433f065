package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	now := begins
	for d, want := range map[time.Duration][2]string{
		0:                              {"now", "现在"},
		400 * time.Millisecond:         {"now", "现在"},
		5 * time.Second:                {"in 5s", "5秒后"},
		-125 * time.Second:             {"2m5s ago", "2分5秒前"},
		59*time.Minute + 1*time.Second: {"in 59m", "59分后"},
		3*time.Hour + 20*time.Minute:   {"in 3h20m", "3小时20分后"},
		-49 * time.Hour:                {"2d1h ago", "2天1小时前"},
		900 * day:                      {"in 2y170d", "2年170天后"},
	} {
		require.Equal(t, want[0], english.relative(now.Add(d), now), d)
		require.Equal(t, want[1], chinese.relative(now.Add(d), now), d)
	}
	require.Equal(t, moment{Text: "–"}, english.moment(time.Time{}, now))
	require.Equal(t, moment{ISO: "2026-11-30T12:00:03Z", Title: "2026-11-30 12:00:03 UTC", Text: "in 3s"},
		english.moment(now.In(time.FixedZone("x", 3600)).Add(3*time.Second), now))
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", time.Microsecond: "<1ms", 350 * time.Millisecond: "350ms", 1200 * time.Millisecond: "1.2s", 3 * time.Second: "3s",
		42 * time.Second: "42s", 200 * time.Second: "3m20s",
	} {
		require.Equal(t, want, english.elapsed(d))
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		require.Equal(t, want, number(n))
	}
	// What is not all of it is not 100%, and what is something is not 0%.
	for share, want := range map[float64]string{0: "0%", 1: "100%", 0.99999: "99.9%", 0.0000001: "0.1%", 0.5: "50%", 0.984: "98.4%"} {
		require.Equal(t, want, percent(share))
	}
	for n, want := range map[int64]string{5: "5 B", 2048: "2.0 KiB", 3 << 20: "3.0 MiB", 5 << 30: "5.0 GiB"} {
		require.Equal(t, want, bytesText(n))
	}
}
