package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

// enter signs in on the web page, and returns the headers that a browser sends from then on.
func (s *service) enter(token string) []string {
	s.t.Helper()
	form := url.Values{"token": {token}, "next": {"/jobs/quick"}}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/sign-in", strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) // follows no redirect
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	require.Equal(s.t, http.StatusSeeOther, resp.StatusCode)
	require.Equal(s.t, "/jobs/quick", resp.Header.Get("Location"))
	cookies := resp.Cookies()
	require.Len(s.t, cookies, 1)
	return []string{"Cookie", cookies[0].Name + "=" + cookies[0].Value}
}

// Where tokens are asked for, a browser is led to where it signs in; its session then may do what the token may.
func TestPageSession(t *testing.T) {
	t.Parallel()
	s := start(t, withTokens(t, httpapi.Secret{Value: operatorToken}, httpapi.Secret{Value: readerToken}))
	require.Equal(t, "/sign-in?next=%2Fjobs%2Fquick", s.get("/jobs/quick", "Accept", "text/html").header.Get("Location"))
	require.Contains(t, s.get("/sign-in").body, `action="/sign-in"`)
	require.Equal(t, http.StatusUnauthorized, s.get("/jobs/quick").status, "a program is told so")
	require.Equal(t, http.StatusUnauthorized, s.get("/v1/jobs", "Accept", "text/html").status)

	operator, reader := s.enter(operatorToken), s.enter(readerToken)
	require.Contains(t, s.get("/jobs/quick", operator...).body, `action="/jobs/quick/trigger"`)
	require.Contains(t, s.get("/jobs/quick", operator...).body, "as operator token from 127.0.0.1")
	require.Equal(t, http.StatusOK, s.get("/v1/jobs", operator...).status, "events come with the same session")
	require.Equal(t, http.StatusAccepted, s.post("/v1/jobs/quick/trigger", "", operator...).status)
	require.NotContains(t, s.get("/jobs/quick", reader...).body, `action="/jobs/quick/trigger"`)
	require.Equal(t, http.StatusForbidden, s.post("/v1/jobs/quick/trigger", "", reader...).status)
	require.Equal(t, http.StatusForbidden, s.post("/jobs/quick/trigger", "", reader...).status)

	// A page of another origin can do nothing with a session, nor sign anybody in.
	for _, path := range []string{"/jobs/quick/trigger", "/sign-in", "/sign-out"} {
		require.Equal(t, http.StatusForbidden, s.post(path, "", append(operator, "Sec-Fetch-Site", "cross-site")...).status, path)
	}
	require.Equal(t, http.StatusUnauthorized, s.get("/", "Cookie", operator[1]+"x").status)
}

// Without tokens nobody signs in.
func TestPageWithoutTokens(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	require.Contains(t, s.get("/").body, "quick")
	require.Equal(t, "/", s.get("/sign-in").header.Get("Location"), "there is nothing to sign in to")
	require.Equal(t, http.StatusForbidden, s.get("/", "Host", "evil.example").status)
}
