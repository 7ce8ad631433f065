package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A browser cannot send a token with each request, so it signs in with it once and gets a cookie. The cookie says
// until when it is good, sealed with a key that follows from the token: it tells nothing of the token, every instance
// that has the token knows it, and a token that was changed ends all sessions that were opened with it.

const (
	sessionCookie = "etcdcron_session"
	sessionLength = 12 * time.Hour
)

// Seal is the value of a session's cookie that is good until an instant, for the holder of a key.
func Seal(key []byte, until time.Time) string {
	at := binary.BigEndian.AppendUint64(nil, uint64(max(until.Unix(), 0)))
	return base64.RawURLEncoding.EncodeToString(append(at, sealOf(key, at)...))
}

func sealOf(key, at []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("etcdcron session "))
	mac.Write(at)
	return mac.Sum(nil)
}

// Sealed reports whether a request has the cookie of a session that is good now and was opened with that key. It
// takes the same time whatever the cookie holds. Access control asks it of each key, where it would ask for a token.
func Sealed(r *http.Request, key []byte, now time.Time) bool {
	c, err := r.Cookie(sessionCookie)
	if err != nil || len(key) == 0 {
		return false
	}
	value, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(value) != 8+sha256.Size {
		return false
	}
	at, seal := value[:8], value[8:]
	good := hmac.Equal(seal, sealOf(key, at))
	return good && now.Unix() < int64(min(binary.BigEndian.Uint64(at), 1<<62))
}

// WithoutSession reports whether a path is for those too who have not signed in yet: the page to do so, and what it
// is made of.
func WithoutSession(path string) bool {
	return path == "/sign-in" || strings.HasPrefix(path, "/assets/")
}

// SignIn leads a browser that may not see a page to where one signs in. It reports false when the request is not one
// for a page, and does nothing then.
func SignIn(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || strings.HasPrefix(r.URL.Path, "/v1/") || r.Header.Get(fragmentHeader) != "" ||
		!strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	return true
}

// entrance is what the sign-in page shows.
type entrance struct {
	Next  string // where to go on
	Wrong bool   // the token that was sent is none
}

func (p *Pages) signInPage(w http.ResponseWriter, r *http.Request) {
	p.enter(w, r, http.StatusOK, entrance{Next: local(r.URL.Query().Get("next"))})
}

func (p *Pages) enter(w http.ResponseWriter, r *http.Request, code int, e entrance) {
	if p.cfg.Open == nil {
		http.Redirect(w, r, e.Next, http.StatusSeeOther)
		return
	}
	v := &visit{Request: r, pages: p, lang: languageOf(w, r)}
	p.render(w, v, code, content{template: "signin", title: v.lang.say("sign.title"), data: e})
}

func (p *Pages) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	e := entrance{Next: local(r.PostFormValue("next"))}
	if p.cfg.Open == nil {
		p.enter(w, r, http.StatusOK, e)
		return
	}
	key, ok := p.cfg.Open(strings.TrimSpace(r.PostFormValue("token")))
	if !ok {
		p.log.Info("somebody tried to sign in with a wrong token")
		e.Wrong = true
		p.enter(w, r, http.StatusUnauthorized, e)
		return
	}
	until := p.now().Add(sessionLength)
	http.SetCookie(w, p.session(r, Seal(key, until), int(sessionLength.Seconds())))
	http.Redirect(w, r, e.Next, http.StatusSeeOther)
}

func (p *Pages) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, p.session(r, "", -1))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

func (p *Pages) session(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure where there is TLS; without, a browser would not send it back
		Name: sessionCookie, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}

// local is an address of this site; its front page for any other.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
