package cronrunner

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// loadedZones holds the zones in use by name, so that a hundred thousand jobs do not each read and keep their own
// copy. It grows no further than the zone database.
var loadedZones sync.Map // string → *time.Location

// loadZone returns the zone of that name, UTC for "". Only names that mean the same on every machine are accepted: UTC,
// and the region names of the IANA database in their exact spelling.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" || name == "Etc/UTC" {
		return time.UTC, nil
	}
	if known, ok := loadedZones.Load(name); ok {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	if err := checkZoneName(name); err != nil {
		return nil, fmt.Errorf("time zone %q: %w", shorten(name), err)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: there is no such zone in the IANA database", name)
	}
	known, _ := loadedZones.LoadOrStore(name, location)
	return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
}

// sameZone tells whether two names are the same to loadZone.
func sameZone(a, b string) bool {
	isUTC := func(name string) bool { return name == "UTC" || name == "Etc/UTC" }
	return a == b || isUTC(a) && isUTC(b)
}

// checkZoneName refuses what time.LoadLocation takes on some machines only, or takes for something else than the
// writer meant.
func checkZoneName(name string) error {
	upper := strings.ToUpper(name)
	switch {
	case len(name) > 64:
		return errors.New("too long for the name of a zone")
	case upper == "LOCAL":
		return errors.New(`it is another zone on every machine; name the region, such as "Europe/Berlin"`)
	case name[0] == '+' || name[0] == '-' || '0' <= name[0] && name[0] <= '9':
		return errors.New(`an offset is not a zone; name the region, such as "Europe/Berlin"`)
	case strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/") != "" || slices.Contains(strings.Split(name, "/"), ""):
		return errors.New(`not the name of a zone; write it as "Europe/Berlin"`)
	case !strings.Contains(name, "/") && regionFor(upper) == "UTC":
		return errors.New(`write it as "UTC"`)
	case !strings.Contains(name, "/"):
		return fmt.Errorf("abbreviations and country names are not accepted, since many lack daylight saving or mean "+
			"several zones; name the region, such as %q", regionFor(upper))
	}
	spelling := zoneSpelling(name)
	area, _, _ := strings.Cut(spelling, "/")
	switch {
	case !slices.Contains(zoneAreas, area):
		return fmt.Errorf("%q is not an area of the IANA database; it has %s", shorten(area), strings.Join(zoneAreas, ", "))
	case spelling != name:
		return fmt.Errorf("wrong spelling, which only some machines accept; did you mean %q?", spelling)
	}
	return nil
}

var zoneAreas = []string{
	"Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Brazil",
	"Canada", "Chile", "Etc", "Europe", "Indian", "Mexico", "Pacific", "US",
}

// regionFor suggests a region for an abbreviation or an old country name in upper case.
func regionFor(abbreviation string) string {
	for region, abbreviations := range map[string][]string{
		"UTC":                 {"UTC", "GMT", "GMT0", "Z", "ZULU", "UCT", "UNIVERSAL", "GREENWICH", "GMT+0", "GMT-0"},
		"America/New_York":    {"EST", "EDT", "ET", "EST5EDT"},
		"America/Chicago":     {"CST", "CDT", "CT", "CST6CDT"},
		"America/Denver":      {"MST", "MDT", "MT", "MST7MDT", "NAVAJO"},
		"America/Los_Angeles": {"PST", "PDT", "PT", "PST8PDT"},
		"Pacific/Honolulu":    {"HST"},
		"Europe/London":       {"BST", "GB"},
		"Europe/Lisbon":       {"WET", "WEST", "PORTUGAL"},
		"Europe/Athens":       {"EET", "EEST"},
		"Europe/Moscow":       {"MSK", "W-SU"},
		"Asia/Kolkata":        {"IST"},
		"Asia/Shanghai":       {"PRC", "BEIJING", "SHANGHAI", "CHINA"},
		"Asia/Hong_Kong":      {"HKT", "HONGKONG"},
		"Asia/Tokyo":          {"JST", "JAPAN"},
		"Asia/Seoul":          {"KST", "ROK"},
		"Asia/Singapore":      {"SGT", "SINGAPORE"},
		"Australia/Sydney":    {"AEST", "AEDT"},
		"Pacific/Auckland":    {"NZST", "NZDT", "NZ"},
	} {
		if slices.Contains(abbreviations, abbreviation) {
			return region
		}
	}
	return "Europe/Berlin"
}

// zoneSpelling returns the spelling that the IANA database would use for a name in any case: every word with a
// capital, but for a few.
func zoneSpelling(name string) string {
	var spelling strings.Builder
	for len(name) > 0 {
		end := strings.IndexAny(name, "_-/+")
		if end < 0 {
			end = len(name)
		}
		word := strings.ToLower(name[:end])
		if special, ok := zoneWords[word]; ok {
			word = special
		} else if word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		spelling.WriteString(word)
		if end < len(name) {
			spelling.WriteByte(name[end])
			end++
		}
		name = name[end:]
	}
	return spelling.String()
}

// zoneWords are the words of zone names that are not written with one capital at the start.
var zoneWords = map[string]string{
	"act": "ACT", "gmt": "GMT", "gmt0": "GMT0", "in": "IN", "lhi": "LHI", "nsw": "NSW", "uct": "UCT", "us": "US",
	"utc": "UTC", "au": "au", "es": "es", "of": "of", "bajanorte": "BajaNorte", "bajasur": "BajaSur",
	"comodrivadavia": "ComodRivadavia", "denoronha": "DeNoronha", "dumontdurville": "DumontDUrville",
	"easterisland": "EasterIsland", "mcmurdo": "McMurdo",
}

// offsetAt returns how far the clocks of a zone are ahead of UTC at an instant, and a later instant up to which that
// stays so.
func offsetAt(location *time.Location, at int64) (offset, end int64) {
	t := time.Unix(at, 0).In(location)
	_, seconds := t.Zone()
	_, bound := t.ZoneBounds()
	switch {
	case bound.IsZero():
		return int64(seconds), math.MaxInt64
	case bound.Unix() <= at:
		// On the last day, in UTC, of a leap year ZoneBounds gives the end of the day before (go.dev/issue/81583).
		return int64(seconds), (floorDiv(at, secondsPerDay) + 1) * secondsPerDay
	}
	return int64(seconds), bound.Unix()
}

// zoneClock goes through the instants in (after, upTo] as the clocks of a zone do, one stretch of constant offset at a
// time, and says which local times come due in it.
type zoneClock struct {
	location    *time.Location
	everyHour   bool // see wallTimes
	after, upTo int64
	from        int64 // where the next stretch begins; at first before after, to learn what the clocks have shown
	shown       int64 // the latest local time that they have shown before from

	// The stretch: its first instant, its offset (local minus UTC), and the first and the last local time that can
	// come due in it. Those before start+offset were skipped: they are due at start.
	start, offset int64
	lo, hi        int64
}

// lookBack is longer than clocks can be set back: offsets are less than a day either way.
const lookBack = 2 * secondsPerDay

func newZoneClock(location *time.Location, everyHour bool, after, upTo int64) zoneClock {
	c := zoneClock{location: location, everyHour: everyHour, after: after, upTo: upTo, from: after + 1, shown: math.MinInt64}
	if !everyHour {
		c.from -= lookBack
	}
	return c
}

// step moves to the next stretch in which a local time can come due, and reports whether there is one.
func (c *zoneClock) step() bool {
	for c.from <= c.upTo {
		offset, end := offsetAt(c.location, c.from)
		start, last := c.from, min(end-1, c.upTo)
		if start <= c.after {
			start = min(end, c.after+1)
			c.shown = max(c.shown, start-1+offset)
		}
		c.start, c.offset = start, offset
		c.lo, c.hi = start+offset, last+offset
		if !c.everyHour {
			c.lo = c.shown + 1
		}
		c.from, c.shown = end, max(c.shown, c.hi)
		if c.lo <= c.hi {
			return true
		}
	}
	return false
}

// instant returns when a local time of the stretch is due.
func (c *zoneClock) instant(local int64) int64 {
	return max(c.start, local-c.offset)
}
