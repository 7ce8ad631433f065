package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/etcdcron/etcdcron/state"
)

// A checkpoint of a command is a text, and what was given is what comes back, byte for byte. In etcd it stands
// as JSON: a text that is JSON already, in the one form in which it survives being stored, as it is, so that
// people and programs can read it there; every other text, a JSON string among them, as a JSON string.

// checkpointOf is a command's text as it is stored.
func checkpointOf(text string) (json.RawMessage, error) {
	switch {
	case text == "":
		return nil, errors.New("the checkpoint is empty; a variable that is not set?")
	case !utf8.ValidString(text), strings.ContainsRune(text, 0):
		return nil, errors.New("the checkpoint is not UTF-8 text without NUL bytes; encode it, for instance with base64")
	case text[0] != '"':
		if kept, err := json.Marshal(json.RawMessage(text)); err == nil && string(kept) == text {
			return kept, nil
		}
	}
	return json.Marshal(text)
}

// textOf is a stored checkpoint as a command gave it. One of a webhook is its JSON, or its text if it is a
// JSON string.
func textOf(value json.RawMessage) (string, error) {
	if len(value) == 0 || value[0] != '"' {
		return string(value), nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}

// isBroken reports whether an error of Restore is of what stands in etcd, so that no waiting mends it.
func isBroken(err error) bool { return errors.Is(err, state.ErrBadRecord) }

// notStarted is a run that was to stop before its work began.
func notStarted(ctx context.Context) error { return fmt.Errorf("not started: %w", context.Cause(ctx)) }
