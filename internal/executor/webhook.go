package executor

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// Webhook is an HTTP request, as it stands in a jobs file. It must not be changed once it is in use; its methods
// are safe for concurrent use.
type Webhook struct {
	// URL is http or https, without user and password. Its query is never shown or stored.
	URL string
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE. Default POST.
	Method string
	// Headers are added to ours. Their values may be secrets.
	Headers map[string]HeaderValue
	// Body is sent as it is. Default, with POST, PUT and PATCH: the run as JSON; otherwise none.
	Body *string
	// CACert is a file with the certificates that the server's is verified by. Default the system's.
	CACert string
	// Cert and Key are files with our certificate and its key. Default none.
	Cert, Key string
}

// HeaderValue is a header's value, or where it is found when the request is made. Exactly one is set; no field
// is an empty value.
type HeaderValue struct {
	Text string
	Env  string // a variable of the scheduler
	File string // an absolute path; a newline at its end is left out
}

const (
	maxURL  = 2048
	maxBody = 256 << 10
)

// methods are those that are allowed, and whether they have a body by default.
var methods = map[string]bool{
	http.MethodGet: false, http.MethodHead: false, http.MethodDelete: false,
	http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
}

// Check says what is wrong with the webhook, every fault at once as a [cronrunner.FieldError]; nil if nothing. It
// does not look for files and variables: they may be elsewhere.
func (w Webhook) Check() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, &cronrunner.FieldError{Field: "webhook." + field, Err: fmt.Errorf(format, args...)})
	}
	address, err := checkURL(w.URL)
	if err != nil {
		fault("url", "%w", err)
	}
	hasBody, known := methods[w.method()]
	if !known {
		fault("method", "%q is not a method that is supported; use %s", w.Method, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	}
	switch {
	case w.Body == nil:
	case known && !hasBody && w.method() != http.MethodDelete:
		fault("body", "a %s request has no body", w.method())
	case len(*w.Body) > maxBody:
		fault("body", "it has %d bytes, at most %d are allowed", len(*w.Body), maxBody)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		if err := CheckHeader(name, w.Headers[name]); err != nil {
			fault("headers", "%s: %w", name, err)
		}
	}
	for _, file := range []struct{ field, path string }{{"ca", w.CACert}, {"cert", w.Cert}, {"key", w.Key}} {
		switch {
		case file.path == "":
		case !filepath.IsAbs(file.path):
			fault(file.field, "%q is relative; use an absolute path", file.path)
		case err == nil && address.Scheme != "https":
			fault(file.field, "needs a url that begins with https")
		}
	}
	switch {
	case w.Cert != "" && w.Key == "":
		fault("cert", "needs its key; add key")
	case w.Key != "" && w.Cert == "":
		fault("key", "needs its certificate; add cert")
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrBadWebhook, errors.Join(faults...))
}

// checkURL reads a URL. Its errors do not repeat it: it may hold secrets.
func checkURL(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
		if escape := url.EscapeError(""); errors.As(err, &escape) {
			err = errors.New("a % in it is followed by no two hexadecimal digits")
		}
	}
	switch {
	case text == "":
		return nil, errors.New("is missing")
	case len(text) > maxURL:
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxURL)
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case address.Scheme != "http" && address.Scheme != "https":
		return nil, errors.New("it must begin with https:// or http://")
	case address.Hostname() == "":
		return nil, errors.New("has no host")
	case address.User != nil:
		return nil, errors.New("has a user or password in it; use headers: Authorization, with {env: NAME} or {file: PATH}")
	case address.Fragment != "":
		return nil, errors.New("has a fragment (#), which no server gets; remove it")
	}
	return address, nil
}

// reservedHeaders are ours, or the connection's.
var reservedHeaders = []string{
	"Idempotency-Key", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// CheckHeader says what is wrong with one header; nil if nothing. Its errors do not repeat the value.
func CheckHeader(name string, value HeaderValue) error {
	canonical := http.CanonicalHeaderKey(name)
	set := 0
	for _, source := range []string{value.Text, value.Env, value.File} {
		if source != "" {
			set++
		}
	}
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }):
		return fmt.Errorf("%q is not a header's name", name)
	case strings.HasPrefix(canonical, "Etcdcron-"), slices.Contains(reservedHeaders, canonical):
		return fmt.Errorf("the header %s is set by etcdcron itself", canonical)
	case set > 1:
		return errors.New("has more than one of text, env and file")
	case value.File != "" && !filepath.IsAbs(value.File):
		return fmt.Errorf("%q is relative; use an absolute path", value.File)
	default:
		return checkHeaderText(value.Text)
	}
}

func checkHeaderText(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("has a control character, which no header can have")
	}
	return nil
}

// isTokenRune tells the characters of a token, RFC 9110 section 5.6.2.
func isTokenRune(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func (w Webhook) method() string {
	if w.Method == "" {
		return http.MethodPost
	}
	return w.Method
}

// Target is the webhook for people, without its secrets.
func (w Webhook) Target() string {
	address, err := url.Parse(w.URL)
	if err != nil {
		return w.method()
	}
	return w.method() + " " + shown(address)
}

// shown is a URL without what may be secret in it.
func shown(address *url.URL) string {
	plain := url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path, RawPath: address.RawPath}
	if address.RawQuery != "" {
		return plain.String() + "?…"
	}
	return plain.String()
}
