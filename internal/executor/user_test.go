package executor

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a command as somebody else")
	}
}

// somebody is a user of this machine who is not root.
func somebody(t *testing.T) *user.User {
	t.Helper()
	for _, name := range []string{"daemon", "nobody"} {
		if u, err := user.Lookup(name); err == nil && u.Uid != "0" {
			return u
		}
	}
	t.Skip("this machine has neither daemon nor nobody")
	return nil
}

func TestCommandOfAUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	u := somebody(t)
	const who = `echo "$(id -u) $(id -g) $(id -G) $HOME ${USER-none} ${LOGNAME-none}"`
	groups, err := u.GroupIds()
	require.NoError(t, err)
	all := append([]string{u.Gid}, groups...)
	for len(all) > 1 && all[1] == u.Gid {
		all = append(all[:1], all[2:]...)
	}
	known := strings.Join([]string{u.HomeDir, u.Username, u.Username}, " ")
	for text, want := range map[string]string{
		u.Username:    strings.Join([]string{u.Uid, u.Gid, strings.Join(all, " "), known}, " "),
		u.Uid + ":54": strings.Join([]string{u.Uid, "54", "54", known}, " "),
		"54321:54322": "54321 54322 54322 / none none",
		"root":        "",
	} {
		run := &fakeRun{}
		require.NoError(t, Command{Shell: who, User: text}.do(t.Context(), run, zap.NewNop(), nil), text)
		if want != "" {
			require.Equal(t, want+"\n", run.output)
		} else {
			require.Contains(t, run.output, "0 0 ")
			require.Contains(t, run.output, " root root\n")
		}
	}
	run := &fakeRun{}
	require.NoError(t, Command{Shell: "echo $HOME", User: "54321:54322", Env: map[string]string{"HOME": "/own"}}.do(t.Context(), run, zap.NewNop(), nil))
	require.Equal(t, "/own\n", run.output, "the job's own variables win")
}

func TestSocketOfAUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	u := somebody(t)
	// The test binary is where others cannot go, so the helper runs from a copy.
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/tmp", "executor") //nolint:usetesting // others cannot go there
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "note")
	require.NoError(t, os.WriteFile(program, binary, 0o755))
	command := Command{
		Argv: []string{program, "POST", "/checkpoint", "mine"}, Dir: "/",
		Env: map[string]string{helperVar: "note"}, User: u.Username,
	}
	run, sockets := &fakeRun{}, newSockets(t)
	require.NoError(t, command.do(t.Context(), run, zap.NewNop(), sockets))
	require.Equal(t, "204 ", run.output)
	require.Equal(t, []string{`"mine"`}, run.taken)

	notes := sockets.open(t.Context(), &fakeRun{}, &identity{uid: 54321, gid: 54321}, zap.NewNop())
	defer notes.close()
	foreign := &fakeRun{}
	err = Command{
		Argv: []string{"sh", "-c", "ETCDCRON_SOCKET=" + notes.path + " exec " + program + " POST /checkpoint theirs"}, Dir: "/",
		Env: map[string]string{helperVar: "note"}, User: u.Username,
	}.do(t.Context(), foreign, zap.NewNop(), nil)
	require.Error(t, err)
	require.Contains(t, foreign.output, "permission denied", "the socket of somebody else's run")
}

func TestUserThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no-such-user": `bad user: there is no user "no-such-user" on this machine; add it here, or write its numbers as uid:gid`,
	} {
		run := &fakeRun{}
		err := Command{Shell: "echo ran", User: text}.do(t.Context(), run, zap.NewNop(), nil)
		require.ErrorIs(t, err, ErrBadUser)
		require.True(t, isPermanent(err))
		require.EqualError(t, err, want)
		require.Empty(t, run.output)
	}
}

func TestUserMayNotEnterOrExecute(t *testing.T) {
	t.Parallel()
	needRoot(t)
	u := somebody(t)
	private := t.TempDir()
	require.NoError(t, os.Chmod(private, 0o700))
	program := file(t, "#!/bin/sh\n", 0o700)
	for name, c := range map[string]Command{
		"dir":     {Argv: []string{"true"}, Dir: private, User: u.Username},
		"program": {Argv: []string{program}, Dir: "/", User: u.Username},
	} {
		err := c.do(t.Context(), &fakeRun{}, zap.NewNop(), nil)
		require.ErrorIs(t, err, ErrNotExecutable, name)
		require.ErrorContains(t, err, "as "+u.Username+": ", name)
	}
}

func init() {
	helpers["as-root"] = func() { // as somebody who is not
		err := Command{Shell: "true", User: "root"}.do(context.Background(), &fakeRun{}, zap.NewNop(), nil)
		os.Stdout.WriteString(err.Error())
		own := Command{Shell: "true", User: strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())}
		if err := own.do(context.Background(), &fakeRun{}, zap.NewNop(), nil); err != nil {
			os.Stdout.WriteString(err.Error())
		}
	}
}

func TestOnlyRootRunsAsSomebodyElse(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir, err := os.MkdirTemp("/tmp", "executor") //nolint:usetesting // others cannot go there
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, binary, 0o755))
	run := &fakeRun{}
	require.NoError(t, Command{
		Argv: []string{program}, Dir: "/", Env: map[string]string{helperVar: "as-root"}, User: "54321:54322",
	}.do(t.Context(), run, zap.NewNop(), nil))
	require.Equal(t, "bad user: only a scheduler that is root can run a command as root, and this one has uid 54321; start it as root, or leave user out", run.output)
}

// Whoever it runs as, it dies with its scheduler and stops when it is told.
func TestStopOfACommandOfAUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	m := newMarks(t)
	for dir := m.dir; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan result, 1)
	go func() {
		done <- start(ctx, Command{Dir: m.dir, Shell: "sleep 600 & echo $! >child; echo $$ >leader; touch ready; wait", User: "54321:54322", Grace: longGrace}, zap.NewNop())
	}()
	m.wait("ready")
	cancel(errStop)
	require.EqualError(t, (<-done).err, "stopped: the test says stop (ended with signal SIGTERM)")
	requireGone(t, m.pid("leader"), m.pid("child"))
}

func TestPermanentExitCodes(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]bool{"exit 64": true, "kill -KILL $$": true, "exit 1": false, "exit 63": false} {
		err := Command{Shell: shell, PermanentExitCodes: []int{2, 64, 137}}.do(t.Context(), &fakeRun{}, zap.NewNop(), nil)
		require.Error(t, err)
		require.Equal(t, want, isPermanent(err), shell)
	}
	require.NoError(t, Command{Shell: "true", PermanentExitCodes: []int{2}}.do(t.Context(), &fakeRun{}, zap.NewNop(), nil))
}
