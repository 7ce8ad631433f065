package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

func TestWebhookAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		block := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	for what, limit := range map[string]int{"/": maxAnswer, "/refused": maxRefusal} {
		run := &fakeRun{}
		err := send(t.Context(), t, Webhook{URL: server.URL + what}, run)
		require.Equal(t, what == "/", err == nil, "%v", err)
		require.True(t, strings.HasPrefix(run.output, fmt.Sprintf("[cut: the end of %d bytes]\nxxx", limit)), "%.60q", run.output)
		require.Len(t, run.output, state.MaxOutput)
	}
}

// An error page that never ends does not hold the job.
func TestWebhookSlowRefusal(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "bad")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	run := &fakeRun{}
	begun := time.Now()
	err := send(t.Context(), t, Webhook{URL: server.URL}, run)
	require.EqualError(t, err, "answered 502 Bad Gateway")
	require.Equal(t, "bad", run.output)
	require.Less(t, time.Since(begun), patience)
}

func TestWebhookAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lines" {
			w.Header().Set("Content-Type", ndjson)
			fmt.Fprint(w, `{"output":"a"}`+"\n"+`{"outp`)
		} else {
			fmt.Fprint(w, "half")
		}
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	for what, want := range map[string]string{"/": "the answer 200 OK broke off after 4 bytes: unexpected EOF", "/lines": "the answer broke off: unexpected EOF"} {
		err := send(t.Context(), t, Webhook{URL: server.URL + what}, &fakeRun{})
		require.EqualError(t, err, want)
		require.False(t, isPermanent(err))
	}
}

func TestWebhookLines(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", state.MaxCheckpoint)
	for name, tc := range map[string]struct {
		answer    string
		err       string
		permanent bool
		progress  []report
		taken     []string
		output    string
	}{
		"all is well": {
			answer: `{"progress":{"done":1,"total":3,"message":"m"}}` + "\n\n" + `{"checkpoint":{"page": 1}}` + "\r\n" + `{"output":"hello"}` + "\n{}\n" +
				`{"progress":{"done":3},"checkpoint":null,"output":"bye"}`,
			progress: []report{{1, 3, "m"}, {3, 0, ""}}, taken: []string{`{"page":1}`, `null`}, output: "hello\nbye\n",
		},
		"nothing":        {},
		"failed":         {answer: `{"checkpoint":1}` + "\n" + `{"error":"no funds"}` + "\n" + `{"checkpoint":2}`, err: "no funds", taken: []string{"1"}},
		"for good":       {answer: `{"error":"no account","permanent":true}`, err: "no account", permanent: true},
		"not said why":   {answer: `{"error":""}`, err: "the answer says that it failed, and not why"},
		"escapes":        {answer: `{"error":"\u001b[31mred"}`, err: "\ufffd[31mred"},
		"permanent":      {answer: `{"permanent":true}`, err: "line 1 of the answer cannot be read: permanent stands beside error; it is JSON with progress, checkpoint, output or error"},
		"unknown":        {answer: "\n" + `{"eror":"x"}`, err: `line 2 of the answer cannot be read: json: unknown field "eror"; it is JSON with progress, checkpoint, output or error`},
		"no JSON":        {answer: "<html>", err: "line 1 of the answer cannot be read: invalid character '<' looking for beginning of value; it is JSON with progress, checkpoint, output or error"},
		"bad progress":   {answer: `{"progress":{"done":-1}}`, err: "done and total are not negative"},
		"too long":       {answer: `{"output":"` + strings.Repeat("x", maxNDJSON) + `"}`, err: "a line of the answer has more than 263168 bytes"},
		"too large":      {answer: `{"checkpoint":"` + huge + `"}`, err: "the checkpoint is too large", permanent: true},
		"just too large": {answer: `{"checkpoint":"` + huge[2:] + `"}`, taken: []string{`"` + huge[2:] + `"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := target(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", ndjson+"; charset=utf-8")
				fmt.Fprint(w, tc.answer)
			})
			run := &fakeRun{}
			err := send(t.Context(), t, Webhook{URL: server.URL}, run)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
			}
			require.Equal(t, tc.permanent, isPermanent(err))
			require.Equal(t, tc.progress, run.progress)
			require.Equal(t, tc.taken, run.taken)
			require.Equal(t, tc.output, run.output)
		})
	}
}

// The next line is not read before a checkpoint is durable, and one that cannot be written ends the call.
func TestWebhookCheckpoints(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	server := target(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // so that the end of the connection is seen
		w.Header().Set("Content-Type", ndjson)
		fmt.Fprint(w, `{"checkpoint":1}`+"\n"+`{"checkpoint":2}`+"\n"+`{"progress":{"done":2}}`+"\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(left)
	})
	run := &fakeRun{save: func(_ context.Context, value json.RawMessage) error {
		if string(value) == "2" {
			return fmt.Errorf("checkpoint: %w", cronrunner.ErrNotOwner)
		}
		return nil
	}}
	err := send(t.Context(), t, Webhook{URL: server.URL}, run)
	require.ErrorIs(t, err, cronrunner.ErrNotOwner)
	require.Equal(t, []string{"1"}, run.taken)
	require.Empty(t, run.progress)
	<-left
}
