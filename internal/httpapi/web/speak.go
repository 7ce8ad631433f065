package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// languageCookie remembers the language that somebody has chosen.
const languageCookie = "etcdcron_lang"

// languageOf is the language to answer in: the one that the address asks for, which is remembered, or was chosen
// before, or that the browser prefers.
func languageOf(w http.ResponseWriter, r *http.Request) language {
	if l, ok := parseLanguage(r.URL.Query().Get("lang")); ok {
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure where there is TLS; without, a browser would not send it back
			Name: languageCookie, Value: l.short(), Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()),
			HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
		})
		return l
	}
	if c, err := r.Cookie(languageCookie); err == nil {
		if l, ok := parseLanguage(c.Value); ok {
			return l
		}
	}
	return accepted(r.Header.Get("Accept-Language"))
}

func parseLanguage(text string) (language, bool) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "-")
	for _, l := range languages {
		if primary == l.short() {
			return l, true
		}
	}
	return english, false
}

// accepted is the one of our languages with the greatest weight in an Accept-Language header (RFC 9110, 12.5.4); English
// when there is none.
func accepted(header string) language {
	best, weight := english, 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, parameter, _ := strings.Cut(part, ";")
		l, ok := parseLanguage(tag)
		if !ok {
			continue
		}
		q := 1.0
		if value, found := strings.CutPrefix(strings.TrimSpace(parameter), "q="); found {
			var err error
			if q, err = strconv.ParseFloat(value, 64); err != nil {
				continue
			}
		}
		if q > weight {
			best, weight = l, q
		}
	}
	return best
}
