package config_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/config"
)

// Whatever the file holds: no panic, no hang; and what is accepted can be registered.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "jobs:\n", "jobs: {a: {schedule: '@daily', shell: x}}",
		"defaults: {time_zone: Asia/Shanghai, timeout: 10m, grace: 1s}\njobs:\n  a:\n    schedule: \"0 9 * * *\"\n    command: [echo, 0900]\n",
		"jobs:\n  a: &a\n    schedule: '@every 5s'\n    shell: |\n      x\n    environment: {A: 1}\n  b: *a\n",
		"jobs:\n  a:\n    schedule: */5 * * * *\n", "jobs: &a {a: *a}", "jobs:\n\ta: 1\n", "? [a]\n: b\n",
		"jobs: {a: {schedule: '@daily', shell: x, catch_up: {policy: none, window: 6h}, overlap: {policy: skip}}}",
		"defaults: {jitter: 5m, catch_up: {policy: all, limit: 50}}\njobs:\n  a: {schedule: '@daily', shell: x, start: 2026-12-01T00:00:00Z, end: \"2027-01-01T00:00:00+08:00\", max_runs: 3, overlap: {policy: allow, limit: 5}}",
		"jobs: {a: {schedule: '@daily', webhook: {url: 'https://h/p?q=r', headers: {A: {env: X}, B: {file: /x}, C: d}, body: x}, retry: {max_attempts: 3, multiplier: 1.5}, checkpoint: job}}",
		"jobs: {a: {schedule: '@daily', shell: x, user: 1000:1000, permanent_exit_codes: [2, 64]}}",
		"--- !!map\njobs: !!binary x\n...\n---\n", "jobs: {a: {<<: {schedule: '@daily'}}}", "\xef\xbb\xbfjobs: {}", "jobs: {\"\\0\": {}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("f", data)
		if err != nil {
			require.Nil(t, file)
			require.True(t, !utf8.Valid(data) || utf8.ValidString(err.Error()))
			return
		}
		require.NotEmpty(t, file.Jobs)
		for _, spec := range file.Jobs {
			require.NoError(t, spec.Job.Check())
			kinds := 0
			for _, is := range []bool{spec.Command.Shell != "", len(spec.Command.Argv) > 0, spec.Webhook != nil} {
				if is {
					kinds++
				}
			}
			require.Equal(t, 1, kinds)
			if spec.Webhook != nil {
				require.NoError(t, spec.Webhook.Check())
			}
		}
	})
}
