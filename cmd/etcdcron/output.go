package main

import (
	"bytes"
	"encoding/json"

	"github.com/etcdcron/etcdcron/internal/term"
)

// list writes items as -o says: a bare array, one object a line, or the table.
func list[T any](o *options, items []T, table func() *term.Table) error {
	switch o.output.value {
	case asJSON:
		if items == nil {
			items = []T{} // [] and not null
		}
		return o.json(items, "  ")
	case asJSONL:
		for _, item := range items {
			if err := o.json(item, ""); err != nil {
				return err
			}
		}
		return nil
	default:
		return table().Write(o.stdout, o.screen(o.stdout))
	}
}

// one writes a single thing as -o says.
func one(o *options, item any, text func() error) error {
	switch o.output.value {
	case asJSON:
		return o.json(item, "  ")
	case asJSONL:
		return o.json(item, "")
	default:
		return text()
	}
}

// json writes v as it is: < > & stay readable.
func (o *options) json(v any, indent string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := o.stdout.Write(b.Bytes())
	return err
}
