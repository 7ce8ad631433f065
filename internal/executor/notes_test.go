package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

// newSockets are sockets with a directory of their own, with a short path.
func newSockets(t *testing.T) *sockets {
	t.Helper()
	base, err := os.MkdirTemp("", "s") //nolint:usetesting // its path may be too long for a socket
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	s := &sockets{log: zap.NewNop(), base: base}
	t.Cleanup(func() {
		s.close()
		left, err := os.ReadDir(base)
		require.NoError(t, err)
		require.Empty(t, left, "nothing is left")
		require.NoError(t, os.Remove(base))
	})
	return s
}

// client speaks to a socket.
func client(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// ask makes a request and returns the status and the body.
func ask(t *testing.T, path, method, what, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://run"+what, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := client(path).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func openNotes(t *testing.T, run attempt) *noteServer {
	t.Helper()
	notes := newSockets(t).open(t.Context(), run, nil, zap.NewNop())
	require.NotNil(t, notes)
	t.Cleanup(notes.close)
	return notes
}

func TestNotes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", state.MaxCheckpoint)
	run := &fakeRun{}
	path := openNotes(t, run).path
	for _, tc := range []struct {
		method, what, body string
		code               int
		text               string
	}{
		{"GET", "/checkpoint", "", 404, "there is no checkpoint\n"},
		{"POST", "/checkpoint", "page 7\n", 204, ""},
		{"GET", "/checkpoint", "", 200, "page 7\n"},
		{"POST", "/checkpoint", `{"page":8}`, 204, ""},
		{"GET", "/checkpoint", "", 200, `{"page":8}`},
		{"POST", "/checkpoint", "", 400, "the checkpoint is empty; a variable that is not set?\n"},
		{"POST", "/checkpoint", "\xff", 400, "the checkpoint is not UTF-8 text without NUL bytes; encode it, for instance with base64\n"},
		{"POST", "/checkpoint", long, 413, "the checkpoint is too large\n"}, // with its quotes
		{"POST", "/checkpoint", long + "x", 413, "at most 65536 bytes are allowed; keep the data elsewhere and a reference here\n"},
		{"POST", "/checkpoint", long[2:], 204, ""},
		{"POST", "/progress", `{"done": 5, "total": 10, "message": "m"}`, 204, ""},
		{"POST", "/progress", `{"done": 6}`, 204, ""},
		{"POST", "/progress", `{"done": 5, "of": 10}`, 400, `progress is JSON such as {"done": 5, "total": 10, "message": "invoices"}: json: unknown field "of"` + "\n"},
		{"POST", "/progress", `{"done": -1}`, 400, "done and total are not negative\n"},
		{"POST", "/progress", `{} {}`, 400, `progress is JSON such as {"done": 5, "total": 10, "message": "invoices"}: there is more than one value` + "\n"},
		{"POST", "/progress", "", 400, `progress is JSON such as {"done": 5, "total": 10, "message": "invoices"}: there is nothing` + "\n"},
		{"POST", "/progress", `{"message": "` + long + `"}`, 413, "at most 16384 bytes are allowed; keep the data elsewhere and a reference here\n"},
		{"GET", "/progress", "", 404, "there are GET and POST /checkpoint, and POST /progress\n"},
		{"PUT", "/checkpoint", "x", 404, "there are GET and POST /checkpoint, and POST /progress\n"},
	} {
		code, text := ask(t, path, tc.method, tc.what, tc.body)
		require.Equal(t, tc.code, code, "%s %s %.40q", tc.method, tc.what, tc.body)
		require.Equal(t, tc.text, text)
	}
	require.Equal(t, []report{{5, 10, "m"}, {6, 0, ""}}, run.progress)
	require.Equal(t, []string{`"page 7\n"`, `{"page":8}`, `"` + long[2:] + `"`}, run.taken)
}

func TestNotesOfARunThatIsNotOurs(t *testing.T) {
	t.Parallel()
	failing := errors.New("etcd is away")
	run := &fakeRun{save: func(context.Context, json.RawMessage) error { return failing }}
	path := openNotes(t, run).path
	code, text := ask(t, path, "POST", "/checkpoint", "x")
	require.Equal(t, 503, code)
	require.Equal(t, "etcd is away\n", text)
	failing = fmt.Errorf("checkpoint: %w", cronrunner.ErrNotOwner)
	code, _ = ask(t, path, "POST", "/checkpoint", "x")
	require.Equal(t, 409, code)
}

// The answer waits for etcd, longer than a client may take for its request; it does not wait when the client has
// gone.
func TestCheckpointIsAnsweredOnceItIsDurable(t *testing.T) {
	t.Parallel()
	begun, durable, left := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	run := &fakeRun{save: func(ctx context.Context, _ json.RawMessage) error {
		begun <- struct{}{}
		select {
		case <-durable:
			return nil
		case <-ctx.Done():
			close(left)
			return ctx.Err()
		}
	}}
	sockets := newSockets(t)
	sockets.wait = 50 * time.Millisecond
	notes := sockets.open(t.Context(), run, nil, zap.NewNop())
	t.Cleanup(notes.close)
	code := make(chan int, 1)
	go func() {
		resp, err := client(notes.path).Post("http://run/checkpoint", "text/plain", strings.NewReader("x"))
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://run/checkpoint", strings.NewReader("y"))
		if err == nil {
			_, err = client(notes.path).Do(req) //nolint:bodyclose // there is no answer
		}
		gone <- err
	}()
	<-begun
	time.Sleep(3 * sockets.wait)
	require.Empty(t, code)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	<-left
	close(durable)
	require.Equal(t, 204, <-code)
	require.Equal(t, []string{`"x"`}, run.taken)
}

func TestNotesEndWithTheRun(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), atomic.Bool{}
	run := &fakeRun{save: func(ctx context.Context, _ json.RawMessage) error {
		close(begun)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // a write that ends late
		ended.Store(true)
		return ctx.Err()
	}}
	sockets := newSockets(t)
	notes := sockets.open(t.Context(), run, nil, zap.NewNop())
	go func() {
		req, _ := http.NewRequest(http.MethodPost, "http://run/checkpoint", strings.NewReader("x"))
		resp, err := client(notes.path).Do(req)
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-begun
	notes.close()
	require.True(t, ended.Load(), "nothing is written after close")
	_, err := os.Lstat(notes.path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNotesServeFewAtOnce(t *testing.T) {
	t.Parallel()
	notes := openNotes(t, &fakeRun{})
	var idle []net.Conn
	for range maxClients + 5 {
		conn, err := net.Dial("unix", notes.path)
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://run/checkpoint", nil)
	require.NoError(t, err)
	_, err = client(notes.path).Do(req) //nolint:bodyclose // there is no answer
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, conn := range idle {
		conn.Close()
	}
	code, _ := ask(t, notes.path, "GET", "/checkpoint", "")
	require.Equal(t, 404, code)
}

func init() {
	helpers["note"] = func() {
		req, err := http.NewRequest(os.Args[1], "http://run"+os.Args[2], strings.NewReader(os.Args[3]))
		if err != nil {
			panic(err)
		}
		resp, err := client(os.Getenv(SocketVariable)).Do(req)
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Print(resp.StatusCode, " ", string(text))
	}
}

// note is a shell's call of the helper above.
func note(args string) string { return helperVar + "=note " + os.Args[0] + " " + args }

func TestCommandReports(t *testing.T) {
	t.Parallel()
	run := &fakeRun{}
	sockets := newSockets(t)
	err := Command{Shell: "echo $" + SocketVariable + "; ls -ld $" + SocketVariable + "; ls -ld $(dirname $" + SocketVariable + "); " +
		note(`POST /checkpoint 'page 7'`) + "; " + note(`GET /checkpoint ''`) + "; " + note(`POST /progress '{"done":5}'`)}.do(t.Context(), run, zap.NewNop(), sockets)
	require.NoError(t, err)
	lines := strings.SplitN(run.output, "\n", 4)
	require.Len(t, lines, 4)
	require.Regexp(t, "^srw------- ", lines[1])
	require.Regexp(t, "^drwx--[x-]--[x-] ", lines[2])
	require.Equal(t, "204 200 page 7204 ", lines[3])
	require.Equal(t, []report{{Done: 5}}, run.progress)
	_, err = os.Lstat(lines[0])
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The handler's context has ended by then.
func TestLastCheckpointOfAStoppedCommand(t *testing.T) {
	t.Parallel()
	m, run := newMarks(t), &fakeRun{}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan error, 1)
	sockets := newSockets(t)
	go func() {
		done <- Command{Dir: m.dir, Grace: longGrace, Shell: `trap "` + note("POST /checkpoint last") + `; exit" TERM; touch ready; while :; do sleep 0.01; done`}.
			do(ctx, run, zap.NewNop(), sockets)
	}()
	m.wait("ready")
	cancel(errStop)
	require.ErrorIs(t, <-done, errStop)
	require.Contains(t, run.output, "204 ")
	require.Equal(t, []string{`"last"`}, run.taken)
}

func TestCommandRunsWithoutASocket(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	s := &sockets{log: zap.New(core), base: "/no/such"}
	for range 2 {
		run := &fakeRun{}
		require.NoError(t, Command{Shell: `echo "${ETCDCRON_SOCKET-none}"`}.do(t.Context(), run, zap.NewNop(), s))
		require.Equal(t, "none\n", run.output)
	}
	require.Equal(t, 1, logs.Len(), "it is said once")
}

func init() {
	helpers["sockets"] = func() { // is killed while a command runs
		s := &sockets{log: zap.NewNop(), base: os.Args[1]}
		Command{Shell: "touch up; exec sleep 600", Dir: os.Args[1]}.do(context.Background(), &fakeRun{}, zap.NewNop(), s) //nolint:errcheck // it is killed
	}
}

func TestLeftoversOfAKilledProcess(t *testing.T) {
	t.Parallel()
	s := newSockets(t)
	killed, living := helper(t, "sockets", s.base), helper(t, "sockets", s.base)
	require.NoError(t, killed.Start())
	m := marks{t, s.base}
	m.wait("up")
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.NoError(t, os.Remove(filepath.Join(s.base, "up")))
	dirs := func() []string {
		found, err := filepath.Glob(filepath.Join(s.base, dirPrefix+"*"))
		require.NoError(t, err)
		return found
	}
	require.Len(t, dirs(), 1)

	require.NoError(t, living.Start()) // takes away what was left
	m.wait("up")
	left := dirs()
	require.Len(t, left, 1)

	stranger := filepath.Join(s.base, dirPrefix+"1") // holds what is not ours
	require.NoError(t, os.Mkdir(stranger, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(stranger, "file"), nil, 0o600))
	link := filepath.Join(s.base, dirPrefix+"2")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	notes := s.open(t.Context(), &fakeRun{}, nil, zap.NewNop())
	require.NotNil(t, notes)
	notes.close()
	require.Len(t, dirs(), 4)
	require.Subset(t, dirs(), append(left, stranger, link), "of one that lives, and what is not ours")

	require.NoError(t, living.Process.Kill())
	require.Error(t, living.Wait())
	require.NoError(t, os.RemoveAll(stranger))
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Remove(filepath.Join(s.base, "up")))
	s.close()
	require.Len(t, dirs(), 1)
	again := &sockets{log: zap.NewNop(), base: s.base}
	again.open(t.Context(), &fakeRun{}, nil, zap.NewNop()).close()
	again.close()
	require.Empty(t, dirs())
}

func TestSocketsAfterATidyUp(t *testing.T) {
	t.Parallel()
	s := newSockets(t)
	s.open(t.Context(), &fakeRun{}, nil, zap.NewNop()).close()
	require.NoError(t, os.Remove(s.path))
	notes := s.open(t.Context(), &fakeRun{}, nil, zap.NewNop())
	require.NotNil(t, notes)
	notes.close()
}

func TestSocketPathIsShort(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"/tmp": "/tmp", "/" + strings.Repeat("x", 90): "/tmp", "/" + strings.Repeat("x", 60): "/" + strings.Repeat("x", 60)} {
		got, err := (&sockets{base: base}).baseDir()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(got)+ownPath, maxSocketPath)
	}
}

func TestDirThatIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := lockDir(dir)
	require.NoError(t, err)
	defer lock.Close()
	_, err = lockDir(dir)
	require.ErrorIs(t, err, syscall.EWOULDBLOCK)
}

// What a socket costs a run.
func BenchmarkCommandWithSocket(b *testing.B) {
	s := &sockets{log: zap.NewNop()}
	defer s.close()
	for b.Loop() {
		require.NoError(b, Command{Argv: []string{"/bin/true"}}.do(b.Context(), &fakeRun{}, zap.NewNop(), s))
	}
}

// For comparison.
func BenchmarkCommandWithoutSocket(b *testing.B) {
	for b.Loop() {
		require.NoError(b, Command{Argv: []string{"/bin/true"}}.do(b.Context(), &fakeRun{}, zap.NewNop(), nil))
	}
}

func BenchmarkSocketAlone(b *testing.B) {
	s := &sockets{log: zap.NewNop()}
	defer s.close()
	b.ReportAllocs()
	for b.Loop() {
		s.open(b.Context(), &fakeRun{}, nil, zap.NewNop()).close()
	}
}
