package cronrunner

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestZoneNamesRefused(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]string{
		"Local":                   `it is another zone on every machine; name the region`,
		"local":                   `it is another zone on every machine`,
		"EST":                     `name the region, such as "America/New_York"`,
		"PST":                     `name the region, such as "America/Los_Angeles"`,
		"MST":                     `name the region, such as "America/Denver"`,
		"EST5EDT":                 `name the region, such as "America/New_York"`,
		"PRC":                     `name the region, such as "Asia/Shanghai"`,
		"XYZ":                     `name the region, such as "Europe/Berlin"`,
		"GMT":                     `write it as "UTC"`,
		"utc":                     `write it as "UTC"`,
		"Z":                       `write it as "UTC"`,
		"+02:00":                  `an offset is not a zone; name the region`,
		"-5":                      `an offset is not a zone`,
		"02:00":                   `an offset is not a zone`,
		"UTC+2":                   `name the region, such as "Europe/Berlin"`,
		"../../etc/x":             `not the name of a zone`,
		"/etc/localtime":          `not the name of a zone`,
		"Asia//Tokyo":             `not the name of a zone`,
		"Asia/":                   `not the name of a zone`,
		`Asia\Tokyo`:              `not the name of a zone`,
		"Asia/Shanghai ":          `not the name of a zone`,
		" ":                       `not the name of a zone`,
		"Asia/Tôkyô":              `not the name of a zone`,
		"asia/shanghai":           `did you mean "Asia/Shanghai"?`,
		"ASIA/SHANGHAI":           `did you mean "Asia/Shanghai"?`,
		"America/New_york":        `did you mean "America/New_York"?`,
		"america/port-AU-prince":  `did you mean "America/Port-au-Prince"?`,
		"posix/Asia/Tokyo":        `is not an area of the IANA database; it has Africa, America`,
		"right/Asia/Tokyo":        `is not an area of the IANA database`,
		"Asia/Nowhere":            `there is no such zone in the IANA database`,
		strings.Repeat("A/", 500): `too long for the name of a zone`,
	} {
		s, err := ParseSchedule("0 9 * * *", zone)
		require.ErrorContains(t, err, want, "zone %q", zone)
		require.ErrorContains(t, err, "time zone ")
		require.Less(t, len(err.Error()), 250)
		require.Nil(t, s)
	}
}

// Names whose spelling is not one capital a word, and one of each area.
func TestZoneNamesAccepted(t *testing.T) {
	t.Parallel()
	for _, zone := range append([]string{
		"Africa/Dar_es_Salaam", "America/Argentina/ComodRivadavia", "America/Indiana/Tell_City", "America/Knox_IN",
		"America/North_Dakota/New_Salem", "America/Port-au-Prince", "America/Port_of_Spain",
		"Antarctica/DumontDUrville", "Antarctica/McMurdo", "Arctic/Longyearbyen", "Asia/Ust-Nera", "Atlantic/Canary",
		"Australia/ACT", "Australia/LHI", "Australia/NSW", "Brazil/DeNoronha", "Canada/Pacific", "Chile/EasterIsland",
		"Etc/GMT+5", "Etc/GMT0", "Etc/UCT", "Etc/Zulu", "Europe/Isle_of_Man", "Indian/Reunion", "Mexico/BajaNorte",
		"Mexico/BajaSur", "Pacific/Honolulu", "US/East-Indiana",
	}, trickyZones...) {
		require.Equal(t, zone, mustSchedule(t, "0 9 * * *", zone).Zone())
	}
}

func TestZonesAreLoadedOnce(t *testing.T) {
	t.Parallel()
	a, err := loadZone("Asia/Tokyo")
	require.NoError(t, err)
	b, err := loadZone("Asia/Tokyo")
	require.NoError(t, err)
	require.Same(t, a, b)
}

// Stretches must join without a hole and move on, whatever time.ZoneBounds says.
func TestOffsetAt(t *testing.T) {
	t.Parallel()
	for _, zone := range trickyZones {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for at := mustTime(t, "1840-01-01T00:00:00Z").Unix(); at < mustTime(t, "2110-01-01T00:00:00Z").Unix(); {
			offset, end := offsetAt(location, at)
			require.Greater(t, end, at, zone)
			end = min(end, maxUnix)
			for _, within := range []int64{at, at + (end-at)/2, end - 1} {
				_, want := time.Unix(within, 0).In(location).Zone()
				require.Equal(t, int64(want), offset, zone)
			}
			at = end
		}
	}
}

// A stretch may end where no clocks change, as at the end of the year past the tables of the zone file. If that falls
// into a repeated hour, what the clocks have shown before still counts.
func TestStretchEndsInRepeatedHour(t *testing.T) {
	t.Parallel()
	const block = "TZif2" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // no transitions
		"\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" +
		"\x00\x00\x00\x01" + "\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00" + "AAA\x00"
	// An hour ahead from March to 31 December, 23:30 UTC.
	location, err := time.LoadLocationFromTZData("Test/Zone", []byte(block+block+"\nAAA0BBB-1,60/2,364/24:30\n"))
	require.NoError(t, err)
	changed := mustTime(t, "2027-12-31T23:30:00Z")
	require.Equal(t, "23:30 AAA", changed.In(location).Format("15:04 MST"))

	s := mustSchedule(t, "15 0 * * *", "UTC")
	s.plan.(*wallTimes).location = location
	require.Equal(t, mustTime(t, "2027-12-31T23:15:00Z"), s.Next(changed.Add(-time.Hour)))
	require.Equal(t, mustTime(t, "2028-01-02T00:15:00Z"), s.Next(changed))
}
