package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/config"
	"github.com/etcdcron/etcdcron/internal/executor"
)

func TestParse_Alert(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("f", []byte(`
jobs:
  a:
    schedule: "@daily"
    shell: x
    alert:
      headers: {Authorization: {env: PAGER_TOKEN}}
      webhook: https://hooks.example/services/T0/s3cret?x=s3cret
      after_failures: 3
      missed: true
      overrun: 20m
      recovered: false
  b: {schedule: "@daily", shell: x, alert: {missed: true}}
  c: {schedule: "@daily", shell: x, alert: none}
  d: {schedule: "@daily", shell: x}
`))
	require.NoError(t, err)
	require.Equal(t, cronrunner.Alert{
		AfterFailures: 3, Missed: true, Overrun: 20 * time.Minute, OmitRecovered: true, Target: "https://hooks.example/…",
	}, file.Jobs[0].Job.Alert)
	require.Equal(t, &executor.Webhook{
		URL:     "https://hooks.example/services/T0/s3cret?x=s3cret",
		Headers: map[string]executor.HeaderValue{"Authorization": {Env: "PAGER_TOKEN"}},
	}, file.Jobs[0].Notify)
	require.NotContains(t, fmt.Sprintf("%+v", file.Jobs[0].Job), "s3cret")
	require.Equal(t, cronrunner.Alert{Missed: true}, file.Jobs[1].Job.Alert)
	for _, j := range file.Jobs[1:] {
		require.Nil(t, j.Notify)
	}
	require.Zero(t, file.Jobs[2].Job.Alert)
	require.Zero(t, file.Jobs[3].Job.Alert)
}

func TestParse_InheritedAlert(t *testing.T) {
	t.Parallel()
	headers := map[string]executor.HeaderValue{"X-Key": {Env: "KEY"}}
	theirs := &executor.Webhook{URL: "https://h/1", Headers: headers}
	for alert, want := range map[string]struct {
		alert  cronrunner.Alert
		notify *executor.Webhook
	}{
		"": {cronrunner.Alert{AfterFailures: 3, Missed: true, Target: "https://h/…"}, theirs},
		"alert: {after_failures: 1, overrun: 2m}":  {cronrunner.Alert{AfterFailures: 1, Missed: true, Overrun: 2 * time.Minute, Target: "https://h/…"}, theirs},
		"alert: {missed: false, recovered: false}": {cronrunner.Alert{AfterFailures: 3, OmitRecovered: true, Target: "https://h/…"}, theirs},
		"alert: none":                         {},
		"alert: {webhook: 'https://other/2'}": {cronrunner.Alert{AfterFailures: 3, Missed: true, Target: "https://other/…"}, &executor.Webhook{URL: "https://other/2"}},
		"alert: {headers: {X-Key: own}}":      {cronrunner.Alert{AfterFailures: 3, Missed: true, Target: "https://h/…"}, &executor.Webhook{URL: "https://h/1", Headers: map[string]executor.HeaderValue{"X-Key": {Text: "own"}}}},
	} {
		file, err := config.Parse("f", []byte("defaults:\n  alert: {after_failures: 3, missed: true, webhook: 'https://h/1', headers: {X-Key: {env: KEY}}}\n"+
			"jobs:\n  a: {schedule: '@daily', shell: x, "+alert+"}\n"))
		require.NoError(t, err, alert)
		require.Equal(t, want.alert, file.Jobs[0].Job.Alert, alert)
		require.Equal(t, want.notify, file.Jobs[0].Notify, alert)
	}

	// A webhook alone waits for a job that says what to tell it.
	file, err := config.Parse("f", []byte("defaults:\n  alert: {webhook: 'https://h/1', recovered: false}\n"+
		"jobs:\n  a: {schedule: '@daily', shell: x, alert: {missed: true}}\n  b: {schedule: '@daily', shell: x}\n"+
		"  c: {schedule: '@daily', shell: x, alert: {missed: false}}\n"))
	require.NoError(t, err)
	require.Equal(t, cronrunner.Alert{Missed: true, OmitRecovered: true, Target: "https://h/…"}, file.Jobs[0].Job.Alert)
	for _, j := range file.Jobs[1:] {
		require.Zero(t, j.Job.Alert)
		require.Nil(t, j.Notify)
	}
}

func TestParse_AlertFaults(t *testing.T) {
	t.Parallel()
	for alert, want := range map[string]string{
		"alert: 3":                               `f:4: a.alert: must be a mapping, not a number; write {after_failures: 3, webhook: "https://…"}, or none`,
		"alert: {}":                              `f:4: a.alert: is empty; write {after_failures: 3}, or none`,
		"alert: {after_failures: 0}":             `f:4: a.alert.after_failures: must be at least 1; it is how many runs in a row may fail`,
		"alert: {missed: yes}":                   `f:4: a.alert.missed: yes is neither true nor false`,
		"alert: {overrun: 20}":                   `f:4: a.alert.overrun: 20 has no unit; write 20s, 20m or 20h`,
		"alert: {overrun: 5ms}":                  `f:4: a.alert.overrun: 5ms is too short; use at least 1s`,
		"alert: {webhook: 'https://h'}":          `f:4: a.alert: it never alerts; use after_failures, missed or overrun`,
		"alert: {missed: true, headers: {A: b}}": `f:4: a.alert.headers: are for a webhook, and there is none`,
		"alert: {missed: true, webhook: 'https://jo:s3cret@h/'}":               `f:4: a.alert.webhook: has a user or password in it; use headers: Authorization, with {env: NAME} or {file: PATH}`,
		"alert: {missed: true, webhook: 'ftp://h/s3cret'}":                     `f:4: a.alert.webhook: it must begin with https:// or http://`,
		"alert: {missed: true, webhook: {url: 'https://s3cret'}}":              `f:4: a.alert.webhook: must be text, not a mapping; write webhook: "https://…", with headers beside it`,
		"alert: {missed: true, webhook: 'https://h', headers: {Host: s3cret}}": `f:4: a.alert.headers.Host: the header Host is set by etcdcron itself`,
		"alert: {failures: 3}": `f:4: a.alert.failures: unknown field; known are after_failures, headers, missed, overrun, recovered, webhook`,
	} {
		_, err := config.Parse("f", []byte(job(daily, alert, hello)))
		require.EqualError(t, err, want, alert)
		require.NotContains(t, err.Error(), "s3cret")
	}
	_, err := config.Parse("f", []byte("defaults:\n  alert: {missed: true, webhook: 'https://h/%zz'}\n"+job(daily, hello)))
	require.True(t, strings.HasPrefix(err.Error(), "f:2: defaults.alert.webhook: cannot be read"), err)
}
