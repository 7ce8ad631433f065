package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/etcdcron/etcdcron/state"
)

// through is what becomes of a checkpoint on its way into etcd and back.
func through(t require.TestingT, text string) string {
	run := &fakeRun{}
	value, err := checkpointOf(text)
	require.NoError(t, err)
	require.NoError(t, run.Checkpoint(nil, value)) //nolint:staticcheck // the fake has no use for a context
	var raw json.RawMessage
	_, err = run.Restore(nil, &raw) //nolint:staticcheck // nor here
	require.NoError(t, err)
	back, err := textOf(raw)
	require.NoError(t, err)
	return back
}

func TestCheckpointComesBackByteForByte(t *testing.T) {
	t.Parallel()
	for text, stored := range map[string]string{
		`5/10`:                    `"5/10"`,
		`42`:                      `42`,
		`1e999`:                   `1e999`,
		`12345678901234567890123`: `12345678901234567890123`,
		`{"page":7}`:              `{"page":7}`,
		`{"b":1,"a":2}`:           `{"b":1,"a":2}`,
		`{"a":1,"a":2}`:           `{"a":1,"a":2}`,
		`null`:                    `null`,
		`{"page": 7}`:             `"{\"page\": 7}"`,
		"{\"page\":7}\n":          `"{\"page\":7}\n"`,
		`"7"`:                     `"\"7\""`,
		`{"a":"<&>"}`:             `"{\"a\":\"\u003c\u0026\u003e\"}"`,
		`{"a":"\u00e9"}`:          `{"a":"\u00e9"}`,
		"{\"a\":\"\u2028\"}":      `"{\"a\":\"\u2028\"}"`,
		" ":                       `" "`,
		"a\r\nb\t\u202e\x1b":      `"a\r\nb\t` + "\u202e" + `\u001b"`,
		"\ufffd":                  "\"\ufffd\"",
		"{":                       `"{"`,
	} {
		value, err := checkpointOf(text)
		require.NoError(t, err)
		require.Equal(t, stored, string(value), "%q", text)
		require.Equal(t, text, through(t, text))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringN(1, 40, -1), rapid.StringMatching(`[\[\]{}":,0-9a e.<\\u-]{1,12}`),
			rapid.SampledFrom([]string{`{"a":[1,2,{"b":"c"}]}`, `[1, 2]`, `"x"`, `-0`, `1E+5`, `"\ud800"`, `[]`}),
		).Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(t, "text")
		require.Equal(t, text, through(t, text))
	})
}

func TestCheckpointThatIsNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "is empty", "\xff": "base64", "a\x00": "base64"} {
		_, err := checkpointOf(text)
		require.ErrorContains(t, err, want)
	}
}

func TestCommandGetsItsCheckpoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ stored, want string }{
		"none": {"", "none"},
		"text": {`"page 7\n"`, "page 7\n"},
		"JSON": {`{"page":7}`, `{"page":7}`},
		"NUL":  {`"a\u0000b"`, "none"}, // of a webhook, before the job became a command
		"most": {`"` + strings.Repeat("x", state.MaxCheckpoint-2) + `"`, strings.Repeat("x", state.MaxCheckpoint-2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zap.WarnLevel)
			run := &fakeRun{}
			if tc.stored != "" {
				run.checkpoint = json.RawMessage(tc.stored)
			}
			require.NoError(t, Command{Shell: `printf %s "${ETCDCRON_CHECKPOINT-none}" | cksum`}.do(t.Context(), run, zap.New(core), nil))
			want := &fakeRun{}
			require.NoError(t, Command{Shell: `printf %s "$TEXT" | cksum`, Env: map[string]string{"TEXT": tc.want}}.do(t.Context(), want, zap.NewNop(), nil))
			require.Equal(t, want.output, run.output)
			require.Equal(t, name == "NUL", logs.Len() == 1)
		})
	}
}

// Work that began anew because etcd was away would be done twice.
func TestNoStartWithoutTheCheckpoint(t *testing.T) {
	t.Parallel()
	tries := 0
	run := &fakeRun{checkpoint: json.RawMessage(`"7"`), restore: func() error {
		if tries++; tries < 3 {
			return errors.New("etcd is away")
		}
		return nil
	}}
	require.NoError(t, Command{Shell: `echo "$ETCDCRON_CHECKPOINT"`}.do(t.Context(), run, zap.NewNop(), nil))
	require.Equal(t, "7\n", run.output)
	require.Equal(t, 3, tries)

	broken := &fakeRun{restore: func() error { return fmt.Errorf("restore: %w", state.ErrBadRecord) }}
	err := Command{Shell: "echo ran"}.do(t.Context(), broken, zap.NewNop(), nil)
	require.ErrorIs(t, err, state.ErrBadRecord)
	require.True(t, isPermanent(err), "no waiting mends it")
	require.Empty(t, broken.output)
}
