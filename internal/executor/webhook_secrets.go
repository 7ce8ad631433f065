package executor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/etcdcron/etcdcron/cronrunner"
)

const (
	// maxSecret bounds a file with a header's value, in bytes.
	maxSecret = 64 << 10
	// minHidden is the length from which on a value is hidden where it shows up: of a shorter one nobody would
	// know what was hidden.
	minHidden = 4
	// minQuery is the same for values of a query, most of which are no secrets.
	minQuery = 12
	hidden   = "[hidden]"
)

// isSecret reports whether a value must not show: it was not written into the jobs file, or is of a header that
// has nothing but secrets.
func (v HeaderValue) isSecret(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Authorization", "Proxy-Authorization", "Cookie":
		return true
	}
	return v.Env != "" || v.File != ""
}

// find is the value as it is now.
func (v HeaderValue) find() (string, error) {
	text := v.Text
	switch {
	case v.Env != "":
		if text = os.Getenv(v.Env); text == "" {
			return "", cronrunner.Permanent(fmt.Errorf("the scheduler has no variable %s, or it is empty; start it with one", v.Env))
		}
	case v.File != "":
		content, err := readSecret(v.File)
		if err != nil {
			return "", err
		}
		text = content
	}
	return text, checkHeaderText(text)
}

// readSecret is the content of a file without the newline at its end.
func readSecret(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody writes to must not hang
	if err != nil {
		if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return "", fmt.Errorf("%s cannot be read: %w", path, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	content = bytes.TrimSuffix(bytes.TrimSuffix(content, []byte("\n")), []byte("\r"))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read", path)
	case len(content) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxSecret)
	case len(content) == 0:
		return "", fmt.Errorf("%s is empty", path)
	}
	return string(content), nil
}

// secrets are texts that must not show in errors and outputs, whoever puts them there: an answer may well repeat
// what it was sent.
type secrets []string

func (s *secrets) add(text string) {
	// Of Bearer X and Basic X, the last word is what is secret.
	for _, t := range []string{text, text[strings.LastIndexByte(text, ' ')+1:]} {
		if len(t) >= minHidden && !slices.Contains(*s, t) {
			*s = append(*s, t)
		}
	}
	slices.SortFunc(*s, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
}

func (s *secrets) addQuery(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= minQuery {
				s.add(v)
				s.add(url.QueryEscape(v))
			}
		}
	}
}

func (s secrets) hide(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// hider hides secrets in what is written through it to a tail: before the tail cuts anything off, since a part of a
// secret is not recognised. It holds back what may be the beginning of one, until flush.
type hider struct {
	secrets

	to   *tail
	held []byte
}

func (h *hider) Write(p []byte) (int, error) {
	h.held = append(h.held, p...)
	h.pass(len(h.held) - max(h.longest(), 1) + 1)
	return len(p), nil
}

func (h *hider) flush() { h.pass(len(h.held)) }

// pass hands on what begins before upTo: from there on the longest secret would not be seen as a whole.
func (h *hider) pass(upTo int) {
	from := 0
	for from < upTo {
		at, found := upTo, ""
		for _, secret := range h.secrets { // the longest first: of two at one place it is the one
			if i := bytes.Index(h.held[from:], []byte(secret)); i >= 0 && from+i < at {
				at, found = from+i, secret
			}
		}
		h.to.write(h.held[from:at])
		if from = at; found != "" {
			h.to.write([]byte(hidden))
			from += len(found)
		}
	}
	h.held = append(h.held[:0], h.held[min(from, len(h.held)):]...)
}

// longest is the length of the longest, in bytes.
func (s secrets) longest() int {
	if len(s) == 0 {
		return 0
	}
	return len(s[0])
}
