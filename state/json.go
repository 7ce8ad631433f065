package state

import (
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// object writes a JSON object field by field, as encoding/json does it, without reflection. A run's record and its
// job's status are written twice a run: by reflection that was a tenth of what a run costs on our side. A property
// test holds the two to the same bytes.
type object struct{ b []byte }

func newObject(size int) *object { return &object{b: append(make([]byte, 0, size), '{')} }

// end is the whole object.
func (o *object) end() []byte { return append(o.b, '}') }

// name begins a field.
func (o *object) name(name string) {
	if len(o.b) > 1 && o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// The fields: those whose names begin with some are left out when they are empty or zero.

func (o *object) text(name, v string) {
	o.name(name)
	o.b = appendText(o.b, v)
}

func (o *object) someText(name, v string) {
	if v != "" {
		o.text(name, v)
	}
}

func (o *object) someInt(name string, v int64) {
	if v != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, v, 10)
	}
}

func (o *object) time(name string, v time.Time) {
	o.name(name)
	if y := v.Year(); y < 0 || y > 9999 {
		o.any(v) // fails, as it must
		return
	}
	o.b = append(o.b, '"')
	o.b = v.AppendFormat(o.b, time.RFC3339Nano)
	o.b = append(o.b, '"')
}

func (o *object) someTime(name string, v time.Time) {
	if !v.IsZero() {
		o.time(name, v)
	}
}

func (o *object) someTexts(name string, v []string) {
	if len(v) == 0 {
		return
	}
	o.name(name)
	o.b = append(o.b, '[')
	for i, s := range v {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, s)
	}
	o.b = append(o.b, ']')
}

func (o *object) someCounts(name string, v map[string]int64) {
	if len(v) == 0 {
		return
	}
	o.name(name)
	o.b = append(o.b, '{')
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if o.b[len(o.b)-1] != '{' {
			o.b = append(o.b, ',')
		}
		o.b = append(appendText(o.b, key), ':')
		o.b = strconv.AppendInt(o.b, v[key], 10)
	}
	o.b = append(o.b, '}')
}

// rare is a field that few records have: by reflection.
func (o *object) rare(name string, v any) {
	o.name(name)
	o.any(v)
}

func (o *object) any(v any) { o.b = append(o.b, encode(v)...) }

// appendText appends a string. What needs to be escaped is rare, and left to encoding/json.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= utf8.RuneSelf {
			return append(b, encode(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
