package executor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxString+1)
	for name, tc := range map[string]struct {
		command Command
		fault   string // "" for none
	}{
		"program":            {Command{Argv: []string{"true", "", "\n"}, Dir: "/", Env: map[string]string{"A.b-c": "\n="}, Grace: time.Second}, ""},
		"shell":              {Command{Shell: "true"}, ""},
		"etcdctl's variable": {Command{Shell: "true", Env: map[string]string{"ETCDCTL_ENDPOINTS": "x"}}, ""},
		"nothing":            {Command{}, "command: is missing"},
		"both":               {Command{Argv: []string{"true"}, Shell: "true"}, "command: both"},
		"blank shell":        {Command{Shell: " \n"}, "shell: is blank"},
		"empty program":      {Command{Argv: []string{""}}, "command: its first item"},
		"NUL in argument":    {Command{Argv: []string{"echo", "a\x00b"}}, `command: "a\x00b" has a NUL`},
		"NUL in shell":       {Command{Shell: "echo \x00"}, "shell: "},
		"NUL in dir":         {Command{Shell: "true", Dir: "/\x00"}, "dir: "},
		"relative dir":       {Command{Shell: "true", Dir: "x"}, `dir: "x" is relative`},
		"long argument":      {Command{Argv: []string{"echo", long}}, "command: an argument of 131072 bytes"},
		"long variable":      {Command{Shell: "true", Env: map[string]string{"A": long}}, `environment: "A": a value of 131072 bytes`},
		"too much":           {Command{Argv: []string{"echo", long[1:], long[1:], long[1:], long[1:], "12345"}}, "command: arguments and environment are 524293 bytes"},
		"no variable name":   {Command{Shell: "true", Env: map[string]string{"": "x"}}, "environment: a variable has no name"},
		"= in name":          {Command{Shell: "true", Env: map[string]string{"A=B": "x"}}, `environment: "A=B" is not`},
		"space in name":      {Command{Shell: "true", Env: map[string]string{"A B": "x"}}, `environment: "A B" is not`},
		"NUL in value":       {Command{Shell: "true", Env: map[string]string{"A": "\x00"}}, `environment: "A" has a NUL`},
		"reserved name":      {Command{Shell: "true", Env: map[string]string{"ETCDCRON_JOB": "x"}}, `environment: "ETCDCRON_JOB": names that begin with`},
		"user":               {Command{Shell: "true", User: "_billing-1.x"}, ""},
		"ids":                {Command{Shell: "true", User: "0:4294967294"}, ""},
		"id alone":           {Command{Shell: "true", User: "1000"}, `user: "1000" is a number alone`},
		"id too large":       {Command{Shell: "true", User: "1:4294967295"}, "user: "},
		"user and group":     {Command{Shell: "true", User: "jo:staff"}, "user: "},
		"exit code 0":        {Command{Shell: "true", PermanentExitCodes: []int{1, 255, 0}}, "permanent_exit_codes: 0 is not between"},
		"exit code 256":      {Command{Shell: "true", PermanentExitCodes: []int{256}}, "permanent_exit_codes: 256 is not between"},
		"negative grace":     {Command{Shell: "true", Grace: -1}, "grace: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.command.Check()
			if tc.fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrBadCommand)
			require.ErrorContains(t, err, tc.fault)
			field, ok := errors.AsType[*cronrunner.FieldError](err)
			require.True(t, ok)
			require.Equal(t, strings.SplitN(tc.fault, ":", 2)[0], field.Field)
		})
	}
}

func TestCheckTellsEveryFault(t *testing.T) {
	t.Parallel()
	err := Command{Dir: "x", Env: map[string]string{"": "", "ETCDCRON_": ""}, Grace: -1}.Check()
	for _, fault := range []string{"command: ", "dir: ", "has no name", "reserved", "grace: "} {
		require.ErrorContains(t, err, fault)
	}
}
