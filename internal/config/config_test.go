package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/executor"
	"github.com/etcdcron/etcdcron/state"
)

func TestParse(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("jobs.yaml", []byte(`
defaults:
  time_zone: Asia/Shanghai
  timeout: 10m
  catch_up: {policy: none, window: 6h}
jobs:
  daily_billing:
    schedule: "0 9 * * *"
    description: charges every account
    command: ["/opt/billing/run", "--all", "two words", 0900]
    dir: /opt/billing
    environment: {LEVEL: 0900, DEBUG: true, EMPTY: ""}
    timeout: 25m
    lock_ttl: 30s
    grace: 5s
    overlap: {policy: skip}
    catch_up: latest
    recovery: resume
    max_recoveries: 2
    labels: {team: billing}
  tick:
    schedule: 0 * * * *
    time_zone: UTC
    shell: |
      echo "$HOME"
`))
	require.NoError(t, err)
	require.Equal(t, &config.File{Name: "jobs.yaml", Jobs: []config.JobSpec{
		{
			Line: 7,
			Job: cronrunner.Job{
				Name: "daily_billing", Schedule: "0 9 * * *", TimeZone: "Asia/Shanghai", Description: "charges every account",
				Target:  "/opt/billing/run --all 'two words' 0900",
				Overlap: cronrunner.Overlap{Policy: cronrunner.Skip}, CatchUp: cronrunner.CatchUp{Policy: cronrunner.Latest, Window: 6 * time.Hour},
				Recovery: cronrunner.Recovery{Policy: cronrunner.Resume, Max: 2},
				Timeout:  25 * time.Minute, LockTTL: 30 * time.Second, Grace: 5 * time.Second,
				Labels: map[string]string{"team": "billing"},
			},
			Command: executor.Command{
				Argv: []string{"/opt/billing/run", "--all", "two words", "0900"},
				Dir:  "/opt/billing",
				Env:  map[string]string{"LEVEL": "0900", "DEBUG": "true", "EMPTY": ""},
			},
		},
		{
			Line: 21,
			Job: cronrunner.Job{
				Name: "tick", Schedule: "0 * * * *", TimeZone: "UTC", Timeout: 10 * time.Minute,
				Target:  `echo "$HOME"`,
				CatchUp: cronrunner.CatchUp{Policy: cronrunner.None, Window: 6 * time.Hour},
			},
			Command: executor.Command{Shell: "echo \"$HOME\"\n"},
		},
	}}, file)
}

// job wraps the fields of one job, of which the first is on line 3.
func job(fields ...string) string {
	return "jobs:\n  a:\n    " + strings.Join(fields, "\n    ") + "\n"
}

const (
	daily = `schedule: "@daily"`
	hello = `command: [echo, hello]`
)

func TestParse_Faults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		yaml string
		want []string
	}{
		"empty":           {"", []string{`f: has no jobs; it begins with "jobs:"`}},
		"only a comment":  {"# nothing\n", []string{`f: has no jobs; it begins with "jobs:"`}},
		"no jobs":         {"defaults: {timeout: 5m}\n", []string{`f:1: jobs: is missing: it maps the name of each job to its schedule and command`}},
		"no job":          {"jobs: {}\n", []string{`f:1: jobs: has no jobs`}},
		"jobs of nothing": {"jobs:\n", []string{`f:1: jobs: must be a mapping, not nothing`}},
		"a list at top":   {"- a\n", []string{`f:1: must be a mapping, not a list`}},
		"a text at top":   {"hello\n", []string{`f:1: must be a mapping, not text`}},
		"jobs as a list": {"jobs:\n  - name: a\n", []string{
			`f:2: jobs: must be a mapping, not a list; each job begins with its name: "daily_billing:"`,
		}},
		"two documents": {job(daily, hello) + "---\njobs: {}\n", []string{
			`f:5: a second YAML document begins here; a jobs file is one: remove the line ---`,
		}},
		"unknown at top": {"job:\n  a: {}\n", []string{
			`f:1: job: unknown field; did you mean jobs?`,
			`f:1: jobs: is missing: it maps the name of each job to its schedule and command`,
		}},

		"unknown field":         {job(daily, hello, "timeot: 5m"), []string{`f:5: a.timeot: unknown field; did you mean timeout?`}},
		"another's field":       {job(`cron: "@daily"`, hello), []string{`f:2: a.schedule: is missing`, `f:3: a.cron: unknown field; did you mean schedule?`}},
		"another way to write":  {job(daily, hello, "lockTTL: 30s"), []string{`f:5: a.lockTTL: unknown field; did you mean lock_ttl?`}},
		"a field like no other": {job(daily, hello, `"\e[31m": 1`), []string{`f:5: a."\x1b[31m": unknown field; known are alert, catch_up, checkpoint, command, description, dir, end, environment, grace, jitter, labels, lock_ttl, max_recoveries, max_runs, overlap, permanent_exit_codes, recovery, retry, schedule, shell, start, time_zone, timeout, user, webhook`}},
		"not yet":               {job(daily, "limit: 3", hello, "history: {keep: 3}"), []string{`f:4: a.limit: is not supported yet`, `f:6: a.history: is not supported yet`}},
		"field twice":           {job(daily, hello, daily), []string{`f:5: a.schedule: is here a second time; the first is on line 3`}},
		"job twice":             {job(daily, hello) + "  a:\n    " + daily, []string{`f:5: jobs.a: is here a second time; the first is on line 2`}},
		"merge key":             {"jobs:\n  a: &a {schedule: '@daily', shell: x}\n  b: {<<: *a}\n", []string{`f:3: b: merge keys (<<) are not supported; put what jobs have in common under defaults`}},
		"a key of a list":       {"jobs:\n  [a]: {}\n", []string{`f:2: jobs: a key must be text, not a list`}},
		"a job of text":         {"jobs:\n  a: x\n", []string{`f:2: a: must be a mapping, not text`}},
		"slash in the name": {"jobs:\n  a/b: {schedule: '@daily', shell: x}\n", []string{
			`f:2: "a/b": bad job name: "a/b" may have only letters, digits, '.', '_' and '-', and begin with a letter or digit; try "a_b"`,
		}},
		"empty name": {"jobs:\n  '': {schedule: '@daily', shell: x}\n", []string{`f:2: "": bad job name: the name is empty`}},

		"schedule is a number": {job("schedule: 0900", hello), []string{`f:3: a.schedule: 0900 is not a schedule; write a cron expression in quotes, such as "0 9 * * *"`}},
		"schedule is a date":   {job("schedule: 2026-12-01", hello), []string{`f:3: a.schedule: 2026-12-01 is not a schedule; write a cron expression in quotes, such as "0 9 * * *"`}},
		"schedule is a list":   {job("schedule: [1, 2]", hello), []string{`f:3: a.schedule: must be text, not a list`}},
		"schedule of nothing":  {job("schedule:", hello), []string{`f:3: a.schedule: has no value; write "" for an empty text`}},
		"schedule is empty":    {job(`schedule: " "`, hello), []string{`f:3: a.schedule: is empty`}},
		"schedule not quoted":  {job("schedule: */5 * * * *  # often", hello), []string{`f:3: schedule: put it in quotes, since YAML reads * in another way: schedule: "*/5 * * * *"`}},
		"one star":             {job(daily, hello) + "  b:\n    schedule: *\n    shell: x\n", []string{`f:6: schedule: put it in quotes, since YAML reads * in another way: schedule: "*"`}},
		"descriptor":           {job("schedule: @hourly", hello), []string{`f:3: schedule: put it in quotes, since YAML reads @ in another way: schedule: "@hourly"`}},

		"no anchor":       {job(daily, "command: *base"), []string{`f:4: there is no anchor &base before the alias *base`}},
		"tab":             {"jobs:\n  a:\n\tschedule: x\n", []string{`f:3: is indented with a tab; YAML wants spaces`}},
		"open bracket":    {job(daily, "command: [echo"), []string{`f:4: is not valid YAML: did not find expected ',' or ']'`}},
		"indentation":     {job(daily, hello) + "   dir: /\n" + strings.Repeat("\n", 30), []string{`f:5: is not valid YAML: did not find expected key`}},
		"quote":           {job(daily, `dir: "x`, hello), []string{`f:4: is not valid YAML: found unexpected end of stream`}},
		"CRLF":            {strings.ReplaceAll(job(daily, "schedule: @x"), "\n", "\r\n"), []string{`f:4: schedule: put it in quotes, since YAML reads @ in another way: schedule: "@x"`}},
		"not UTF-8":       {"jobs:\n  a: \xff\n", []string{`f:2: is not UTF-8 text; save the file as UTF-8`}},
		"UTF-16":          {"\xff\xfej\x00", []string{`f:1: is not UTF-8 text; save the file as UTF-8`}},
		"escape sequence": {"jobs:\n  a: \x1b[31m\n", []string{`f:2: has a control character (U+001B); remove it, or write it as an escape in double quotes`}},
		"strange tag":     {job(daily, "shell: !!binary aGVsbG8="), []string{`f:4: a.shell: the YAML tag "!!binary" is not supported`}},

		"no command":          {job(daily), []string{`f:2: a.command: is missing; use command (a program and its arguments), shell (a line for /bin/sh) or webhook (an HTTP request)`}},
		"command and shell":   {job(daily, hello, "shell: echo"), []string{`f:4: a.command: both command and shell are set; use one of them`}},
		"command is text":     {job(daily, "command: echo hello"), []string{`f:4: a.command: must be a list, not text; write ["program", "argument"], or use shell for a line of shell`}},
		"command is empty":    {job(daily, "command: []"), []string{`f:4: a.command: is empty`}},
		"program is empty":    {job(daily, "command: ['', x]"), []string{`f:4: a.command: its first item, the program, is empty`}},
		"argument is nothing": {job(daily, "command: [echo, ]", "dir: ~"), []string{`f:5: a.dir: has no value; write "" for an empty text`}},
		"argument is a list":  {job(daily, "command: [echo, [x]]"), []string{`f:4: a.command: must be text, not a list`}},
		"NUL":                 {job(daily, `command: [echo, "\0"]`), []string{`f:4: a.command: "\x00" has a NUL byte, which no argument can have`}},
		"dir":                 {job(daily, hello, "dir: x", "environment: {A: \"\\0\"}"), []string{`f:5: a.dir: "x" is relative; use an absolute path`, `f:6: a.environment.A: "A" has a NUL byte, which no variable can have`}},
		"shell is empty":      {job(daily, "shell: ' '"), []string{`f:4: a.shell: is empty`}},
		"shell is a list":     {job(daily, "shell: [echo, x]"), []string{`f:4: a.shell: must be text, not a list; use command for a list`}},
		"environment is a list": {job(daily, hello, "environment: [A=b]"), []string{
			`f:5: a.environment: must be a mapping, not a list; write NAME: "value"`,
		}},
		"variables": {job(daily, hello, "environment:", "  A=B: x", "  ETCDCRON_JOB: x", "  C:", "  D: {}"), []string{
			`f:6: a.environment."A=B": "A=B" is not a variable's name`,
			`f:7: a.environment.ETCDCRON_JOB: "ETCDCRON_JOB": names that begin with ETCDCRON_ are reserved`,
			`f:8: a.environment.C: has no value; write "" for an empty text`,
			`f:9: a.environment.D: must be text, not a mapping`,
		}},

		"user":                {job(daily, hello, "user: a b"), []string{`f:5: a.user: "a b" is neither a user's name nor uid:gid`}},
		"user, a number":      {job(daily, hello, "user: 1000"), []string{`f:5: a.user: "1000" is a number alone; write uid:gid, such as 1000:1000, or a name`}},
		"user, too large":     {job(daily, hello, "user: 4294967295:0"), []string{`f:5: a.user: "4294967295:0": a uid and a gid are at most 4294967294`}},
		"exit codes":          {job(daily, hello, "permanent_exit_codes:", "  - 0", "  - 256", "  - x"), []string{`f:6: a.permanent_exit_codes: must be at least 1; 0 is success`, `f:7: a.permanent_exit_codes: 256 is not between 1 and 255`, `f:8: a.permanent_exit_codes: x is not a whole number`}},
		"exit codes, no list": {job(daily, hello, "permanent_exit_codes: 2"), []string{`f:5: a.permanent_exit_codes: must be a list, not a number; write [2, 64]`}},

		"retry is a number":  {job(daily, hello, "retry: 3"), []string{`f:5: a.retry: must be a mapping, not a number; write {max_attempts: 3}`}},
		"retry, its parts":   {job(daily, hello, "retry:", "  max_attempts: 0", "  initial: 5", "  max: 0s", "  multiplier: 0.5", "  jitter: none"), []string{`f:6: a.retry.max_attempts: must be at least 1; 1 is no retry`, `f:7: a.retry.initial: 5 has no unit; write 5s, 5m or 5h`, `f:8: a.retry.max: 0s is not positive; leave the field out for its default`, `f:9: a.retry.multiplier: must be at least 1; with 1, pauses do not grow`, `f:10: a.retry.jitter: unknown field; known are initial, max, max_attempts, multiplier`}},
		"retry, many":        {job(daily, hello, "retry:", "  max_attempts: 1001"), []string{`f:6: a.retry.max_attempts: 1001 is not between 1 (no retry) and 1000`}},
		"retry, once":        {job(daily, hello, "retry: {initial: 5s}"), []string{`f:5: a.retry.max_attempts: with 1 attempt there is no retry; use 2 or more, or leave out the rest`}},
		"retry, max":         {job(daily, hello, "retry:", "  max_attempts: 2", "  initial: 10s", "  max: 5s"), []string{`f:8: a.retry.max: 5s is less than the initial pause, 10s`}},
		"retry, multiplier":  {job(daily, hello, "retry:", "  max_attempts: 2", "  multiplier: 1e999"), []string{`f:7: a.retry.multiplier: +Inf is not between 1 and 100`}},
		"retry, no number":   {job(daily, hello, "retry: {max_attempts: 2, multiplier: nan}"), []string{`f:5: a.retry.multiplier: nan is not a number; write one such as 2 or 1.5`}},
		"checkpoint":         {job(daily, hello, "checkpoint: always"), []string{`f:5: a.checkpoint: "always" is not a scope of checkpoints; use "run" or "job"`}},
		"checkpoint, allow":  {job(daily, hello, "checkpoint: job", "overlap: allow"), []string{`f:5: a.checkpoint: "job" contradicts overlap "allow": runs at the same time would overwrite each other's`}},
		"webhook, too":       {job(daily, hello, "webhook: {url: 'https://h'}", "dir: /", "user: x"), []string{`f:4: a.command: both command and webhook are set; use one of them`, `f:6: a.dir: is for commands; a webhook has none`, `f:7: a.user: is for commands; a webhook has none`}},
		"webhook is a text":  {job(daily, "webhook: https://h"), []string{`f:4: a.webhook: must be a mapping, not text; write {url: "https://…"}`}},
		"webhook, no url":    {job(daily, "webhook: {method: PUT}"), []string{`f:4: a.webhook.url: is missing`}},
		"webhook, url":       {job(daily, "webhook:", "  url: ftp://h", "  timeout: 5s"), []string{`f:5: a.webhook.url: it must begin with https:// or http://`, `f:6: a.webhook.timeout: unknown field; known are body, ca, cert, headers, key, method, url`}},
		"webhook, password":  {job(daily, "webhook: {url: 'https://jo:hunter2@h'}"), []string{`f:4: a.webhook.url: has a user or password in it; use headers: Authorization, with {env: NAME} or {file: PATH}`}},
		"webhook, method":    {job(daily, "webhook: {url: 'https://h', method: post}"), []string{`f:4: a.webhook.method: "post" is not a method that is supported; use DELETE, GET, HEAD, PATCH, POST, PUT`}},
		"webhook, body":      {job(daily, "webhook:", "  url: https://h", "  method: GET", "  body: x"), []string{`f:7: a.webhook.body: a GET request has no body`}},
		"webhook, body JSON": {job(daily, "webhook: {url: 'https://h', body: {a: 1}}"), []string{`f:4: a.webhook.body: must be text, not a mapping; put JSON in quotes: '{"a": 1}'`}},
		"webhook, files":     {job(daily, "webhook:", "  url: http://h", "  ca: ca.pem", "  cert: /c.pem"), []string{`f:6: a.webhook.ca: "ca.pem" is relative; use an absolute path`, `f:7: a.webhook.cert: needs a url that begins with https`, `f:7: a.webhook.cert: needs its key; add key`}},
		"webhook, headers": {job(daily, "webhook:", "  url: https://h", "  headers:", "    idempotency-key: x", "    A B: hunter2", `    C: "hunter2\n"`, "    D: {env: X, file: /y}", "    E: {file: y}", "    F: {vault: x}", "    G: [x]", "    Authorization: {env: X}", "    authorization: x"), []string{
			`f:7: a.webhook.headers.idempotency-key: the header Idempotency-Key is set by etcdcron itself`,
			`f:8: a.webhook.headers."A B": "A B" is not a header's name`,
			`f:9: a.webhook.headers.C: has a control character, which no header can have`,
			`f:10: a.webhook.headers.D: must be a text, {env: NAME} or {file: PATH}`,
			`f:11: a.webhook.headers.E: "y" is relative; use an absolute path`,
			`f:12: a.webhook.headers.F.vault: unknown field; known are env, file`,
			`f:13: a.webhook.headers.G: must be text, not a list`,
			`f:15: a.webhook.headers.authorization: is the same header as Authorization`,
		}},

		"timeout without unit": {job(daily, hello, "timeout: 30"), []string{`f:5: a.timeout: 30 has no unit; write 30s, 30m or 30h`}},
		"timeout of days":      {job(daily, hello, "timeout: 1d"), []string{`f:5: a.timeout: 1d is not a duration; write one such as 90s, 25m or 1h30m`}},
		"timeout of nothing":   {job(daily, hello, "timeout: 0s"), []string{`f:5: a.timeout: 0s is not positive; leave the field out for its default`}},
		"negative timeout":     {job(daily, hello, "timeout: -5m"), []string{`f:5: a.timeout: -5m is not positive; leave the field out for its default`}},
		"no recovery":          {job(daily, hello, "max_recoveries: 0"), []string{`f:5: a.max_recoveries: must be at least 1; for none, write recovery: fail`}},
		"recoveries":           {job(daily, hello, "max_recoveries: 1.5"), []string{`f:5: a.max_recoveries: 1.5 is not a whole number`}},
		"recoveries, many":     {job(daily, hello, "max_recoveries: 99999999999999999999"), []string{`f:5: a.max_recoveries: 99999999999999999999 is too large; use at most 2147483647`}},
		"overlap":              {job(daily, hello, "overlap: restart"), []string{`f:5: a.overlap: "restart" is not an overlap policy; use "skip", "queue", "coalesce", "replace" or "allow"`}},
		"overlap with a limit": {job(daily, hello, "overlap: {policy: skip, limit: 3, x: 1}"), []string{`f:5: a.overlap.x: unknown field; known are limit, policy`, `f:5: a.overlap.limit: only "queue" and "allow" have a limit`}},
		"overlap, none":        {job(daily, hello, "overlap:", "  policy: allow", "  limit: 0"), []string{`f:7: a.overlap.limit: must be at least 1; it is how many runs may wait or, with allow, go on at once`}},
		"overlap, many":        {job(daily, hello, "overlap:", "  policy: allow", "  limit: 1001"), []string{`f:7: a.overlap.limit: 1001 is not between 1 and 1000`}},
		"catch-up":             {job(daily, hello, "catch_up:", "  policy: al", "  window: 1ms"), []string{`f:5: a.catch_up: "al" is not a catch-up policy; use "latest", "all" or "none"`, `f:7: a.catch_up.window: 1ms is too short; use at least 1s, and more than a failover takes`}},
		"catch-up, limit":      {job(daily, hello, "catch_up:", "  policy: latest", "  limit: 5"), []string{`f:7: a.catch_up.limit: only "all" has a limit`}},
		"catch-up, many":       {job(daily, hello, "catch_up:", "  limit: 1001", "  policy: all"), []string{`f:6: a.catch_up.limit: 1001 is not between 1 and 1000`}},
		"catch-up, none":       {job(daily, hello, "catch_up:", "  policy: all", "  limit: 0"), []string{`f:7: a.catch_up.limit: must be at least 1; for none, write catch_up: none`}},
		"catch-up and overlap": {job(daily, hello, "overlap: replace", "catch_up: all"), []string{`f:6: a.catch_up: "all" contradicts overlap "replace", which runs the newest only; use "latest"`}},

		"start is a date":        {job(daily, hello, "start: 2026-12-01", `end: "2026-12-31"`), []string{`f:5: a.start: 2026-12-01 has no time of day and no offset; write 2026-12-01T00:00:00Z or, for instance, 2026-12-01T00:00:00+08:00`, `f:6: a.end: 2026-12-31 has no time of day and no offset; write 2026-12-31T23:59:59Z or, for instance, 2026-12-31T23:59:59+08:00`}},
		"start without offset":   {job(daily, hello, "start: 2026-12-01 09:00:00"), []string{`f:5: a.start: "2026-12-01 09:00:00" is not an RFC 3339 time with an offset; write one such as 2026-12-01T00:00:00Z or 2026-12-01T00:00:00+08:00`}},
		"start of nothing":       {job(daily, hello, "start:"), []string{`f:5: a.start: has no value; write "" for an empty text`}},
		"end with a fraction":    {job(daily, hello, "end: 2026-12-01T00:00:00.5Z"), []string{`f:5: a.end: 2026-12-01T00:00:00.5Z is not in whole seconds`}},
		"end is the zero time":   {job(daily, hello, "end: 0001-01-01T00:00:00Z"), []string{`f:5: a.end: 0001-01-01T00:00:00Z is outside the years 1970 to 9999`}},
		"end past the last year": {job(daily, hello, "end: 9999-12-31T23:59:59-01:00"), []string{`f:5: a.end: 9999-12-31T23:59:59-01:00 is outside the years 1970 to 9999`}},
		"end before start":       {job(daily, hello, "end: 2026-12-01T00:00:00Z", "start: 2026-12-01T00:00:01Z"), []string{`f:5: a.end: 2026-12-01T00:00:00Z is before the start, 2026-12-01T00:00:01Z`}},
		"never in between":       {job(daily, hello, "start: 2026-12-01T00:00:01Z", "end: 2026-12-01T23:59:59Z"), []string{`f:3: a.schedule: "@daily": never fires from 2026-12-01T00:00:01Z to 2026-12-01T23:59:59Z`}},
		"no runs":                {job(daily, hello, "max_runs: 0"), []string{`f:5: a.max_runs: must be at least 1; for no limit, leave it out`}},
		"jitter":                 {job(daily, hello, "jitter: 500ms"), []string{`f:5: a.jitter: 500ms: use whole seconds`}},
		"jitter without unit":    {job(daily, hello, "jitter: 30"), []string{`f:5: a.jitter: 30 has no unit; write 30s, 30m or 30h`}},
		"jitter, long":           {job(daily, hello, "jitter: 25h"), []string{`f:5: a.jitter: 25h0m0s is not between 0s and 24h0m0s`}},
		"jitter, negative":       {job(daily, hello, "jitter: -1s"), []string{`f:5: a.jitter: -1s is not between 0s and 24h0m0s`}},
		"recovery":               {job(daily, hello, "recovery: [resume]"), []string{`f:5: a.recovery: must be text, not a list`}},
		"lock":                   {job(daily, hello, "lock_ttl: 1500ms"), []string{`f:5: a.lock_ttl: 1.5s is too short; use at least 3s`}},
		"grace for the lock": {job(daily, hello, "grace: 10s"), []string{
			`f:2: a.lock_ttl: 15s is too short for a grace of 10s: a job that loses its lock must have stopped before another instance can get it; use a lock_ttl of at least 31s, or a grace of at most 4.75s`,
		}},

		"defaults, told once": {
			"defaults:\n  lock_ttl: 1s\n  timeout: x\n  time_zone: Asia\n  schedule: x\njobs:\n  a: {schedule: '@daily', shell: x}\n  b: {schedule: '@daily', shell: x}\n",
			[]string{
				`f:2: defaults.lock_ttl: 1s is too short; use at least 3s`,
				`f:3: defaults.timeout: x is not a duration; write one such as 90s, 25m or 1h30m`,
				`f:4: defaults.time_zone: ` + zoneFault(t, "Asia"),
				`f:5: defaults.schedule: stands with each job, not in the defaults`,
			},
		},
		"defaults of parts, told once": {
			"defaults:\n  jitter: 1ms\n  catch_up: {policy: all, limit: 5000}\njobs:\n  a: {schedule: '@daily', shell: x}\n  b: {schedule: '@daily', shell: x, catch_up: {window: 1h}}\n",
			[]string{
				`f:2: defaults.jitter: 1ms: use whole seconds`,
				`f:3: defaults.catch_up.limit: 5000 is not between 1 and 1000`,
			},
		},
		"contradiction in the defaults, told once": {
			"defaults:\n  catch_up: all\n  overlap: coalesce\njobs:\n  a: {schedule: '@daily', shell: x}\n  b: {schedule: '@daily', shell: x, catch_up: {window: 1h}}\n",
			[]string{`f:2: defaults.catch_up: "all" contradicts overlap "coalesce", which has one run stand for all that passed; use "latest"`},
		},
		"contradictions to the defaults' catch-up": {
			"defaults:\n  catch_up: all\njobs:\n  a:\n    schedule: '@daily'\n    shell: x\n    overlap: coalesce\n  b:\n    schedule: '@daily'\n    shell: x\n    overlap: replace\n    catch_up: {window: 1h}\n",
			[]string{
				`f:4: a.catch_up: "all" contradicts overlap "coalesce", which has one run stand for all that passed; use "latest" (catch_up is from the defaults, on line 2; the job can have its own)`,
				`f:8: b.catch_up: "all" contradicts overlap "replace", which runs the newest only; use "latest" (catch_up is from the defaults, on line 2; the job can have its own)`,
			},
		},
		"contradiction to the defaults' overlap": {
			"defaults:\n  overlap: replace\njobs:\n  a:\n    schedule: '@daily'\n    shell: x\n    catch_up: all\n  b: {schedule: '@daily', shell: x, catch_up: al}\n",
			[]string{
				`f:7: a.catch_up: "all" contradicts overlap "replace", which runs the newest only; use "latest" (overlap is from the defaults, on line 2; the job can have its own)`,
				`f:8: b.catch_up: "al" is not a catch-up policy; use "latest", "all" or "none"`,
			},
		},
		"contradiction to the defaults' lock": {
			"defaults:\n  lock_ttl: 30s\njobs:\n  a: {schedule: '@daily', shell: x, grace: 10s}\n",
			[]string{
				`f:4: a.lock_ttl: 30s is too short for a grace of 10s: a job that loses its lock must have stopped before another instance can get it; use a lock_ttl of at least 31s, or a grace of at most 9.75s (lock_ttl is from the defaults, on line 2; the job can have its own)`,
			},
		},
		"contradiction to the defaults' retry": {
			"defaults:\n  retry: {max_attempts: 3, initial: 10s, max: 1m}\njobs:\n  a: {schedule: '@daily', shell: x, retry: {max: 5s}}\n  b: {schedule: '@daily', shell: x, retry: {initial: 5m}}\n",
			[]string{
				`f:4: a.retry.max: 5s is less than the initial pause, 10s (retry.initial is from the defaults, on line 2; the job can have its own)`,
				`f:5: b.retry.max: 1m0s is less than the initial pause, 5m0s (retry.max is from the defaults, on line 2; the job can have its own)`,
			},
		},
		"zone": {job(daily, hello, "time_zone: Mars/Olympus"), []string{`f:5: a.time_zone: ` + zoneFault(t, "Mars/Olympus")}},
		"all at once, by line": {
			"jobs:\n  a:\n    timeout: 30\n  b:\n    schedule: '@daily'\n    shel: x\n",
			[]string{
				`f:2: a.schedule: is missing`,
				`f:2: a.command: is missing; use command (a program and its arguments), shell (a line for /bin/sh) or webhook (an HTTP request)`,
				`f:3: a.timeout: 30 has no unit; write 30s, 30m or 30h`,
				`f:4: b.command: is missing; use command (a program and its arguments), shell (a line for /bin/sh) or webhook (an HTTP request)`,
				`f:6: b.shel: unknown field; did you mean shell?`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f", []byte(tc.yaml))
			var faults config.FaultErrors
			require.ErrorAs(t, err, &faults)
			require.Equal(t, strings.Join(tc.want, "\n"), err.Error())
		})
	}
}

// zoneFault is what the scheduler says of a zone.
func zoneFault(t *testing.T, zone string) string {
	t.Helper()
	_, err := cronrunner.ParseSchedule("@daily", zone)
	require.Error(t, err)
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

func TestParse_SameTextByAliases(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte("jobs:\n"+
		"  a: {schedule: '@daily', command: &c [echo, hello], environment: &e {A: b}}\n"+
		"  b: {schedule: '@hourly', command: *c, environment: *e}\n"))
	require.NoError(t, err)
	require.Equal(t, file.Jobs[0].Command, file.Jobs[1].Command)
}

func TestParse_ZoneOfTheScheduleBeforeTheDefault(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte("defaults: {time_zone: Asia/Shanghai}\n"+job(`schedule: "TZ=Asia/Tokyo 0 9 * * *"`, hello)))
	require.NoError(t, err)
	schedule, err := cronrunner.ParseSchedule(file.Jobs[0].Job.Schedule, file.Jobs[0].Job.TimeZone)
	require.NoError(t, err)
	require.Equal(t, "Asia/Tokyo", schedule.Zone())
}

func TestParse_CommentedOut(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte("defaults:\n  # timeout: 5m\n"+job(daily, hello, "labels:", "environment:")))
	require.NoError(t, err)
	require.Empty(t, file.Jobs[0].Command.Env)
}

// A file that grows by its aliases is refused soon.
func TestParse_Bombs(t *testing.T) {
	t.Parallel()
	labels := make([]string, 10000)
	for i := range labels {
		labels[i] = fmt.Sprintf("k%d: v", i)
	}
	var wide strings.Builder
	fmt.Fprintf(&wide, "jobs:\n  j: {schedule: '@daily', shell: x, labels: &l {%s}}\n", strings.Join(labels, ", "))
	for i := range 10000 {
		fmt.Fprintf(&wide, "  j%d: {schedule: '@daily', shell: x, labels: *l}\n", i)
	}
	var deep strings.Builder
	deep.WriteString("jobs:\n  a: &x0 [lol]\n")
	for i := range 50 {
		fmt.Fprintf(&deep, "  a%d: &x%d [%s]\n", i, i+1, strings.Repeat(fmt.Sprintf("*x%d, ", i), 10))
	}
	for name, tc := range map[string]struct{ yaml, want string }{
		"wide": {wide.String(), "labels: the file has more than 1048576 entries, with those that aliases repeat"},
		"deep": {deep.String(), "must be a mapping, not a list"},
		"self": {"jobs: &a {a: *a, labels: *a, environment: *a}\n", "must be text, not a mapping"},
		"nest": {"jobs: " + strings.Repeat("[", 1<<20), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f", []byte(tc.yaml))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestParse_ManyFaults(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("f", []byte("jobs:\n"+strings.Repeat("  a: {}\n", 5000)))
	var faults config.FaultErrors
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, 1001)
	require.ErrorContains(t, err, "there are more faults; mend these first")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	require.NoError(t, os.WriteFile(big, make([]byte, config.MaxSize+1), 0o600))
	for path, want := range map[string]string{
		dir:                          ": cannot be read: it is a directory",
		filepath.Join(dir, "absent"): ": cannot be read: no such file or directory",
		big:                          ": is larger than 4 MiB",
	} {
		_, err := config.Load(path)
		require.EqualError(t, err, path+want)
	}
	good := filepath.Join(dir, "jobs.yaml")
	require.NoError(t, os.WriteFile(good, []byte(job(daily, hello)), 0o600))
	file, err := config.Load(good)
	require.NoError(t, err)
	require.Len(t, file.Jobs, 1)
}

// The example that the README begins with.
func TestLoad_Quickstart(t *testing.T) {
	t.Parallel()
	file, err := config.Load("../../examples/quickstart/jobs.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, file.Jobs)
}

func TestTarget(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`command: [a, "", "it's", $x]`:                               `a '' 'it'\''s' '$x'`,
		"shell: |\n      a\n      if b; then\n        c\n      fi\n": "a\nif b; then\n  c\nfi",
		`shell: " a | b "`:                                           `a | b`,
		"shell: " + strings.Repeat("héllo ", 100):                    strings.Repeat("héllo ", 27) + "héll [cut]",
		"command: [" + strings.Repeat("x", 500) + "]":                strings.Repeat("x", 194) + " [cut]",
	} {
		file, err := config.Parse("f", []byte(job(daily, command, "environment: {SECRET: s}")))
		require.NoError(t, err)
		require.Equal(t, want, file.Jobs[0].Job.Target)
		require.LessOrEqual(t, len(file.Jobs[0].Job.Target), 200)
	}
}

// A limit that was inherited belongs to the policy that was.
func TestParse_InheritedLimits(t *testing.T) {
	t.Parallel()
	queue := func(limit int) cronrunner.Overlap { return cronrunner.Overlap{Policy: cronrunner.Queue, Limit: limit} }
	all := func(limit int, window time.Duration) cronrunner.CatchUp {
		return cronrunner.CatchUp{Policy: cronrunner.All, Limit: limit, Window: window}
	}
	for fields, want := range map[string]cronrunner.Job{
		"":                                      {Overlap: queue(5), CatchUp: all(50, time.Hour)},
		"overlap: skip":                         {Overlap: cronrunner.Overlap{Policy: cronrunner.Skip}, CatchUp: all(50, time.Hour)},
		"overlap: queue":                        {Overlap: queue(5), CatchUp: all(50, time.Hour)},
		"overlap: {limit: 7}":                   {Overlap: queue(7), CatchUp: all(50, time.Hour)},
		"overlap: {limit: 7, policy: queue}":    {Overlap: queue(7), CatchUp: all(50, time.Hour)},
		"overlap: allow":                        {Overlap: cronrunner.Overlap{Policy: cronrunner.Allow}, CatchUp: all(50, time.Hour)},
		"catch_up: latest":                      {Overlap: queue(5), CatchUp: cronrunner.CatchUp{Policy: cronrunner.Latest, Window: time.Hour}},
		"catch_up: {policy: none, window: 2h}":  {Overlap: queue(5), CatchUp: cronrunner.CatchUp{Policy: cronrunner.None, Window: 2 * time.Hour}},
		"catch_up: {window: 2h}":                {Overlap: queue(5), CatchUp: all(50, 2*time.Hour)},
		"catch_up: {limit: 7}":                  {Overlap: queue(5), CatchUp: all(7, time.Hour)},
		"catch_up: all":                         {Overlap: queue(5), CatchUp: all(50, time.Hour)},
		"catch_up: latest, overlap: replace":    {Overlap: cronrunner.Overlap{Policy: cronrunner.Replace}, CatchUp: cronrunner.CatchUp{Policy: cronrunner.Latest, Window: time.Hour}},
		"overlap: {policy: allow, limit: 1000}": {Overlap: cronrunner.Overlap{Policy: cronrunner.Allow, Limit: 1000}, CatchUp: all(50, time.Hour)},
	} {
		file, err := config.Parse("f", []byte("defaults:\n  overlap: {policy: queue, limit: 5}\n  catch_up: {policy: all, limit: 50, window: 1h}\n"+
			"jobs:\n  a: {schedule: '@daily', shell: 'true', "+fields+"}\n"))
		require.NoError(t, err, fields)
		require.Equal(t, want.Overlap, file.Jobs[0].Job.Overlap, fields)
		require.Equal(t, want.CatchUp, file.Jobs[0].Job.CatchUp, fields)
	}
}

func TestParse_Bounds(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte(`
defaults: {jitter: 5m}
jobs:
  quoted: {schedule: "@daily", shell: x, start: "2026-12-01T00:00:00+08:00", end: '2026-12-31T23:59:59Z'}
  plain:
    schedule: "@daily"
    shell: x
    start: 2026-12-01T00:00:00Z
    end: 2026-12-31T23:59:59+08:00
    max_runs: 10
    jitter: 90s
  none: {schedule: "@daily", shell: x, jitter: 0s, max_runs: 2147483647}
`))
	require.NoError(t, err)
	at := func(month time.Month, day, hour, minute, second int) time.Time {
		return time.Date(2026, month, day, hour, minute, second, 0, time.UTC)
	}
	for i, want := range []cronrunner.Job{
		{Name: "quoted", Start: at(11, 30, 16, 0, 0), End: at(12, 31, 23, 59, 59), Jitter: 5 * time.Minute},
		{Name: "plain", Start: at(12, 1, 0, 0, 0), End: at(12, 31, 15, 59, 59), MaxRuns: 10, Jitter: 90 * time.Second},
		{Name: "none", MaxRuns: 2147483647},
	} {
		want.Schedule, want.Target = "@daily", "x"
		require.Equal(t, want, file.Jobs[i].Job)
	}
}

// What a job does not say anew of its retries is inherited; a single attempt has no pauses to inherit.
func TestParse_InheritedRetry(t *testing.T) {
	t.Parallel()
	inherited := cronrunner.Retry{MaxAttempts: 3, Initial: time.Second, Max: time.Minute, Multiplier: 1.5}
	with := func(change func(*cronrunner.Retry)) cronrunner.Retry {
		r := inherited
		change(&r)
		return r
	}
	for fields, want := range map[string]cronrunner.Retry{
		"":                         inherited,
		"retry: {}":                inherited,
		"retry: {initial: 2s}":     with(func(r *cronrunner.Retry) { r.Initial = 2 * time.Second }),
		"retry: {max_attempts: 1}": {MaxAttempts: 1},
		"retry: {max: 2m, multiplier: 3, max_attempts: 5}": {MaxAttempts: 5, Initial: time.Second, Max: 2 * time.Minute, Multiplier: 3},
	} {
		file, err := config.Parse("f", []byte("defaults:\n  checkpoint: job\n  retry: {max_attempts: 3, initial: 1s, max: 1m, multiplier: 1.5}\n"+
			"jobs:\n  a: {schedule: '@daily', shell: 'true', "+fields+"}\n  b: {schedule: '@daily', shell: x, checkpoint: run}\n"))
		require.NoError(t, err, fields)
		require.Equal(t, want, file.Jobs[0].Job.Retry, fields)
		require.Equal(t, state.PerJob, file.Jobs[0].Job.Checkpoint)
		require.Equal(t, state.PerRun, file.Jobs[1].Job.Checkpoint)
	}
}

func TestParse_CommandOfAUser(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte(job(daily, hello, "user: 1000:1001", "permanent_exit_codes: [2, 64]")))
	require.NoError(t, err)
	require.Equal(t, executor.Command{Argv: []string{"echo", "hello"}, User: "1000:1001", PermanentExitCodes: []int{2, 64}}, file.Jobs[0].Command)
	require.Nil(t, file.Jobs[0].Webhook)
}

func TestParse_Webhook(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte(`
jobs:
  a:
    schedule: "@daily"
    webhook:
      url: https://billing.internal:8443/charge?month=now&token=hunter2
      method: PUT
      headers:
        Authorization: {file: /run/secrets/billing}
        X-Key: {env: BILLING_KEY}
        X-Number: 0900
        X-Empty: ""
      body: '{"all": true}'
      ca: /etc/ca.pem
      cert: /etc/cert.pem
      key: /etc/key.pem
  b: {schedule: "@daily", webhook: {url: "http://h", headers: }}
`))
	require.NoError(t, err)
	body := `{"all": true}`
	require.Equal(t, &executor.Webhook{
		URL: "https://billing.internal:8443/charge?month=now&token=hunter2", Method: "PUT",
		Headers: map[string]executor.HeaderValue{
			"Authorization": {File: "/run/secrets/billing"}, "X-Key": {Env: "BILLING_KEY"}, "X-Number": {Text: "0900"}, "X-Empty": {},
		},
		Body: &body, CACert: "/etc/ca.pem", Cert: "/etc/cert.pem", Key: "/etc/key.pem",
	}, file.Jobs[0].Webhook)
	require.Equal(t, executor.Command{}, file.Jobs[0].Command)
	require.Equal(t, "PUT https://billing.internal:8443/charge?…", file.Jobs[0].Job.Target)
	require.Equal(t, "POST http://h", file.Jobs[1].Job.Target)
}
