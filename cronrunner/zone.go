package cronrunner

import (
	"fmt"
	"regexp"
	"time"
)

// maxZoneName is longer than any zone's name.
const maxZoneName = 64

// zoneName is an area and a place, each with a capital: what the IANA database calls a zone. A name in
// another case works on some file systems and not on others.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z]+(/[A-Z][A-Za-z0-9_+-]*)+$`)

// loadZone loads a zone by its IANA name. Names without a place are refused, but for UTC: "EST" has no
// daylight saving and "Local" is another zone on every instance.
func loadZone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	if len(name) > maxZoneName {
		return nil, fmt.Errorf("time zone: the name has %d bytes; use a region such as Asia/Shanghai", len(name))
	}
	if !zoneName.MatchString(name) {
		return nil, fmt.Errorf("time zone %q is not the name of a region; use UTC or one such as Asia/Shanghai, Europe/Berlin, America/New_York "+
			"(abbreviations and offsets have no daylight saving, and Local differs between instances)", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is unknown; use a name of the IANA database such as Asia/Shanghai", name)
	}
	return loc, nil
}
