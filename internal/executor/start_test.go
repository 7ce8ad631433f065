package executor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func file(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(name, []byte(content), mode))
	return name
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	plain := file(t, "#!/bin/sh\n", 0o644)
	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, filepath.Dir(plain))
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		command Command
		reason  error
		text    string
	}{
		"not in PATH":     {Command{Argv: []string{"no-such-program"}}, ErrNotFound, `"no-such-program" is not in PATH`},
		"shell line":      {Command{Argv: []string{"echo a | wc -c"}}, ErrNotFound, "use shell"},
		"no such file":    {Command{Argv: []string{"/no/such"}}, ErrNotFound, "/no/such does not exist"},
		"not in own PATH": {Command{Argv: []string{"sh"}, Env: map[string]string{"PATH": "/nowhere"}}, ErrNotFound, `PATH "/nowhere"`},
		"relative PATH":   {Command{Argv: []string{"program"}, Dir: filepath.Dir(plain), Env: map[string]string{"PATH": ".::" + relative}}, ErrNotFound, ""},
		"not executable":  {Command{Argv: []string{plain}}, ErrNotExecutable, "chmod +x"},
		"same in PATH":    {Command{Argv: []string{"program"}, Env: map[string]string{"PATH": "/bin:" + filepath.Dir(plain)}}, ErrNotExecutable, plain},
		"a directory":     {Command{Argv: []string{"/"}}, ErrNotExecutable, "is a directory"},
		"no directory":    {Command{Argv: []string{"true"}, Dir: "/no/such"}, ErrBadDir, "/no/such does not exist"},
		"not a directory": {Command{Shell: "true", Dir: plain}, ErrBadDir, "is not a directory"},
		"no interpreter":  {Command{Argv: []string{file(t, "#! /no/such -x\n", 0o755)}}, ErrBadInterpreter, `asks for "/no/such -x"`},
		"CRLF":            {Command{Argv: []string{file(t, "#!/bin/sh\r\ntrue\r\n", 0o755)}}, ErrBadInterpreter, "CRLF"},
		"text":            {Command{Argv: []string{file(t, "hello\n", 0o755)}}, ErrNotExecutable, "with a #! line"},
		"empty file":      {Command{Argv: []string{file(t, "", 0o755)}}, ErrNotExecutable, "with a #! line"},
		"faulty":          {Command{}, ErrBadCommand, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := &fakeRun{}
			err := tc.command.do(t.Context(), run, zap.NewNop(), nil)
			require.ErrorIs(t, err, tc.reason)
			require.ErrorContains(t, err, tc.text)
			require.Nil(t, run.exitCode)
		})
	}
}

func TestNoShell(t *testing.T) {
	t.Parallel()
	res := program{file: "/no/such/sh", argv: []string{"sh", "-c", "true"}, shell: true}.run(t.Context(), zap.NewNop())
	require.ErrorIs(t, res.err, ErrNoShell)
	require.Nil(t, res.exit)
}

func TestDirIsGoneSinceTheCheck(t *testing.T) {
	t.Parallel()
	res := program{file: "/bin/sh", argv: []string{"sh"}, dir: "/no/such"}.run(t.Context(), zap.NewNop())
	require.ErrorIs(t, res.err, ErrBadDir)
}

func TestProgramIsFoundFromDirAndOwnPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(file(t, "#!/bin/sh\necho here\n", 0o755))
	for _, c := range []Command{
		{Argv: []string{"./program"}, Dir: dir},
		{Argv: []string{"program"}, Env: map[string]string{"PATH": "/nowhere:" + dir}},
	} {
		res := start(t.Context(), c, zap.NewNop())
		require.NoError(t, res.err)
		require.Equal(t, "here\n", res.output)
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t, "no-such-program").err, "exit status 127 (the shell did not find a command)")
	require.ErrorContains(t, run(t, "/").err, "exit status 126 (the shell could not execute a command)")
	env := Command{Argv: []string{file(t, "#!/usr/bin/env sh\r\n", 0o755)}}
	require.ErrorContains(t, start(t.Context(), env, zap.NewNop()).err, "CRLF")
	require.EqualError(t, start(t.Context(), Command{Argv: []string{"sh", "-c", "exit 127"}}, zap.NewNop()).err, "exit status 127")
}
