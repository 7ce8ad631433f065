package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

const (
	operatorToken = "operator-0123456789abcdef"
	readerToken   = "reader-0123456789abcdef"
)

func withTokens(t *testing.T, operator, reader httpapi.Secret) func(*httpapi.Config) {
	t.Helper()
	access, err := httpapi.NewAccess(operator, reader, false, nil)
	require.NoError(t, err)
	return func(cfg *httpapi.Config) { cfg.Access = access }
}

// Who has no token gets nothing but whether the instance lives; a reader changes nothing; and it is on record who
// asked.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens(t, httpapi.Secret{Value: operatorToken}, httpapi.Secret{Value: readerToken}))
	reader, operator := []string{"Authorization", "Bearer " + readerToken}, []string{"Authorization", "bearer " + operatorToken}
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs/quick", "/v1/jobs/quick/runs", "/v1/requests", "/v1/leader", "/v1/instances", "/v1/openapi.yaml",
		"/metrics", "/", "/nowhere",
	} {
		for name, headers := range map[string][]string{
			"nothing":        nil,
			"another token":  {"Authorization", "Bearer " + operatorToken + "x"},
			"a part of it":   {"Authorization", "Bearer " + operatorToken[:20]},
			"an empty one":   {"Authorization", "Bearer "},
			"another scheme": {"Authorization", "Basic " + operatorToken},
		} {
			got := s.get(path, headers...)
			require.Equal(t, http.StatusUnauthorized, got.status, "%s with %s", path, name)
			require.Equal(t, "unauthorized", got.code(t))
			require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
		}
		require.NotEqual(t, http.StatusUnauthorized, s.get(path, reader...).status, path)
		require.NotEqual(t, http.StatusUnauthorized, s.get(path, operator...).status, path)
	}
	require.Equal(t, 401, s.get("/v1/events").status)
	require.Equal(t, 200, s.get("/livez").status)
	require.Equal(t, 200, s.get("/readyz").status)

	require.Equal(t, 401, s.post("/v1/jobs/quick/trigger", "").status)
	got := s.post("/v1/jobs/quick/trigger", "", reader...)
	require.Equal(t, 403, got.status)
	require.Equal(t, "forbidden", got.code(t))
	runs, err := s.store.History(t.Context(), quick, "", 10)
	require.NoError(t, err)
	require.Empty(t, runs.Runs)
	var first asked
	s.post("/v1/jobs/quick/trigger", `{"by": "jo`+strings.Repeat("o", 2000)+`"}`, operator...).into(t, &first)
	by := s.run(quick, first.ID, isOver).RequestedBy
	require.True(t, strings.HasPrefix(by, "jooo"))
	require.True(t, strings.HasSuffix(by, " [cut] (operator token from 127.0.0.1)"), "a long name hides nobody: %s", by)
}

// A token that has changed in its file counts at once; one that cannot be read leaves the last one good.
func TestTokenFileIsReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, at int) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(int64(at), 0)))
	}
	write(operatorToken+"\n", 1)
	s := start(t, withTokens(t, httpapi.Secret{File: file}, httpapi.Secret{}))
	status := func(token string) int { return s.get("/v1/leader", "Authorization", "Bearer "+token).status }
	require.Equal(t, 200, status(operatorToken))
	write(readerToken, 2)
	require.Equal(t, 401, status(operatorToken))
	require.Equal(t, 200, status(readerToken))
	write("short", 3)
	require.Equal(t, 200, status(readerToken))
	require.NoError(t, os.Remove(file))
	require.Equal(t, 200, status(readerToken))
	require.Equal(t, 401, status(""))
	write(operatorToken, 4)
	require.Equal(t, 200, status(operatorToken))
	require.Equal(t, 401, status(readerToken))
}

// The reader's token in the operator's file lets readers do no more than before.
func TestTokenFileBecomesReaders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(operatorToken), 0o600))
	s := start(t, withTokens(t, httpapi.Secret{File: file}, httpapi.Secret{Value: readerToken}))
	reader, operator := []string{"Authorization", "Bearer " + readerToken}, []string{"Authorization", "Bearer " + operatorToken}
	require.Equal(t, 202, s.post("/v1/jobs/quick/trigger", "", operator...).status)
	require.NoError(t, os.WriteFile(file, []byte(readerToken), 0o600)) // of another length, so that it is seen to have changed
	require.Equal(t, 401, s.get("/v1/leader", operator...).status)
	require.Equal(t, 200, s.get("/v1/leader", reader...).status)
	require.Equal(t, 403, s.post("/v1/jobs/quick/trigger", "", reader...).status)
	require.Equal(t, 403, s.post("/v1/jobs/quick/trigger", "", s.enter(readerToken)...).status, "nor with a session")
}

func TestNewAccess(t *testing.T) {
	t.Parallel()
	access, err := httpapi.NewAccess(httpapi.Secret{}, httpapi.Secret{}, false, nil)
	require.NoError(t, err)
	require.Nil(t, access, "nobody is asked for anything")
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, secrets := range map[string][2]httpapi.Secret{
		"the operator's token has 5 bytes, and needs 16": {{Value: "short"}},
		"the reader's token has 0 bytes":                 {{Value: operatorToken}, {File: empty}},
		"no such file":                                   {{File: empty + "x"}},
		"has white space in it":                          {{Value: operatorToken + " " + readerToken}},
		"are the same":                                   {{Value: operatorToken}, {Value: operatorToken}},
	} {
		_, err := httpapi.NewAccess(secrets[0], secrets[1], false, nil)
		require.ErrorContains(t, err, want)
	}
}

// A page of another origin changes nothing, whichever way it tries, and one whose name was made to lead here reads
// nothing either.
func TestOtherOrigins(t *testing.T) {
	t.Parallel()
	s := start(t, func(cfg *httpapi.Config) { cfg.Hosts = []string{"cron.test"} })
	port := s.url[strings.LastIndex(s.url, ":"):]
	for name, headers := range map[string][]string{
		"another site":          {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"},
		"another port":          {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"},
		"an old browser":        {"Origin", "http://evil.test"},
		"a sandboxed page":      {"Origin", "null"},
		"a form without a body": {"Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded"},
	} {
		for _, path := range []string{"/v1/jobs/quick/trigger", "/v1/jobs/quick/pause", "/v1/leader/resign"} {
			got := s.post(path, "", headers...)
			require.Equal(t, 403, got.status, name)
			require.Equal(t, "forbidden", got.code(t))
		}
	}
	for _, host := range []string{"evil.test" + port, "evil.test", "127.0.0.1.evil.test" + port, "localhost.evil.test"} {
		for _, path := range []string{"/v1/jobs", "/v1/events", "/metrics"} {
			got := s.get(path, "Host", host, "Sec-Fetch-Site", "same-origin")
			require.Equal(t, 403, got.status, host)
			require.Contains(t, got.body, "not known as")
		}
		require.Equal(t, 403, s.post("/v1/jobs/quick/trigger", "", "Host", host, "Origin", "http://"+host, "Sec-Fetch-Site", "same-origin").status)
	}
	runs, err := s.store.History(t.Context(), quick, "", 10)
	require.NoError(t, err)
	require.Empty(t, runs.Runs, "nothing was triggered")
	for _, host := range []string{"localhost" + port, "LocalHost", "127.0.0.1" + port, "[::1]" + port, "cron.test" + port} {
		require.Equal(t, 200, s.get("/v1/jobs", "Host", host).status, host)
	}
	require.Equal(t, 202, s.post("/v1/jobs/quick/trigger", "", "Origin", s.url, "Sec-Fetch-Site", "same-origin").status, "its own page may")
	require.Equal(t, 200, s.get("/livez", "Host", "evil.test").status)
}
