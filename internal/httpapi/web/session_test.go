package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func withCookie(t *testing.T, value string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: value})
	return r
}

func TestSealed(t *testing.T) {
	t.Parallel()
	key, other := []byte("0123456789abcdef"), []byte("another key, as long")
	good := Seal(key, begins.Add(time.Hour))
	require.True(t, Sealed(withCookie(t, good), key, begins))
	require.False(t, Sealed(withCookie(t, good), key, begins.Add(time.Hour)), "it is over")
	require.False(t, Sealed(withCookie(t, good), other, begins), "the token was changed")
	require.False(t, Sealed(withCookie(t, good), nil, begins), "there is no such token")
	require.False(t, Sealed(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), key, begins))
	for _, bad := range []string{"", "x", good[1:], good + "A", "////", strings.Repeat("A", len(good))} {
		require.False(t, Sealed(withCookie(t, bad), key, begins), bad)
	}
	// Who moves its end breaks the seal.
	longer := Seal(key, begins.Add(1000*time.Hour))
	require.False(t, Sealed(withCookie(t, longer[:10]+good[10:]), key, begins))
	require.NotContains(t, good, "0123456789abcdef")
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := &site{t: t, pages: New(Config{Open: func(token string) ([]byte, bool) { return []byte("the key"), token == "the token" }})}
	page := s.get("/sign-in?next=/jobs/a")
	require.Equal(t, http.StatusOK, page.code)
	require.Contains(t, page.body, `name="next" value="/jobs/a"`)

	wrong := s.post("/sign-in", url.Values{"token": {"another"}, "next": {"/jobs/a"}})
	require.Equal(t, http.StatusUnauthorized, wrong.code)
	require.Empty(t, wrong.header.Get("Set-Cookie"))
	require.Contains(t, wrong.body, "Look for blanks")
	require.NotContains(t, wrong.body, "another")

	in := s.post("/sign-in", url.Values{"token": {" the token\n"}, "next": {"/jobs/a"}})
	require.Equal(t, http.StatusSeeOther, in.code)
	require.Equal(t, "/jobs/a", in.header.Get("Location"))
	cookie, err := http.ParseSetCookie(in.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.True(t, Sealed(withCookie(t, cookie.Value), []byte("the key"), time.Now()))
	require.NotContains(t, cookie.Value, "token")

	out := s.post("/sign-out", nil)
	require.Equal(t, http.StatusSeeOther, out.code)
	require.Contains(t, out.header.Get("Set-Cookie"), "Max-Age=0")
}

// Who signs in is led to a page of this site, and to no other.
func TestLocal(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/jobs/a?x=1": "/jobs/a?x=1", "": "/", "https://evil.example": "/", "//evil.example": "/", "/\\evil.example": "/", "javascript:alert(1)": "/", "jobs": "/",
		"/\tx": "/",
	} {
		require.Equal(t, want, local(next), next)
	}
}

func TestSignIn_LeadsBrowsersOnly(t *testing.T) {
	t.Parallel()
	lead := func(method, path string, headers ...string) (bool, *httptest.ResponseRecorder) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		return SignIn(w, r), w
	}
	ok, w := lead(http.MethodGet, "/jobs/a?x=1", "Accept", "text/html,*/*")
	require.True(t, ok)
	require.Equal(t, "/sign-in?next=%2Fjobs%2Fa%3Fx%3D1", w.Header().Get("Location"))
	for _, r := range [][]string{
		{http.MethodGet, "/v1/jobs", "Accept", "text/html"},
		{http.MethodGet, "/"},
		{http.MethodPost, "/", "Accept", "text/html"},
		{http.MethodGet, "/", "Accept", "text/html", fragmentHeader, "main"},
	} {
		ok, w := lead(r[0], r[1], r[2:]...)
		require.False(t, ok, r)
		require.Empty(t, w.Header())
	}
	require.True(t, WithoutSession("/sign-in"))
	require.True(t, WithoutSession("/assets/style.css"))
	require.False(t, WithoutSession("/"))
	require.False(t, WithoutSession("/sign-in/../jobs"))
}
