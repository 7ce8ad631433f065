package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// minToken is the least length of a token, in bytes: a shorter one can be guessed.
const minToken = 16

// token is a token that is compared in constant time. One in a file is read again when the file has changed; if that
// cannot be read then, or holds no token, the last one stays good, and the log says so.
type token struct {
	name string
	file string
	log  *zap.Logger

	mu     sync.Mutex
	digest [sha256.Size]byte
	read   stamp // of the file when it was last read
}

// stamp tells whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(file string) (stamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}

func newToken(name string, s Secret, log *zap.Logger) (*token, error) {
	t := &token{name: name, file: s.File, log: log}
	if log == nil {
		t.log = zap.NewNop()
	}
	if s.File == "" {
		return t, t.set(s.Value)
	}
	return t, t.load()
}

func (t *token) set(text string) error {
	text = strings.TrimSpace(text)
	switch {
	case len(text) < minToken:
		return fmt.Errorf("the %s's token has %d bytes, and needs %d at least; make one with: openssl rand -hex 32", t.name, len(text), minToken)
	case strings.ContainsAny(text, " \t\r\n"):
		return fmt.Errorf("the %s's token has white space in it: a file holds one token", t.name)
	}
	t.digest = sha256.Sum256([]byte(text))
	return nil
}

func (t *token) load() error {
	var err error
	if t.read, err = stampOf(t.file); err != nil {
		return err
	}
	text, err := os.ReadFile(t.file)
	if err != nil {
		return err
	}
	if err := t.set(string(text)); err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return nil
}

// sum is the token's digest as it is now.
func (t *token) sum() [sha256.Size]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" {
		return t.digest
	}
	if now, err := stampOf(t.file); now != t.read {
		if err == nil {
			err = t.load()
		}
		t.read = now
		if err != nil {
			t.log.Warn("the token's file has changed and cannot be used; the token that it held before stays good",
				zap.String("file", t.file), zap.Error(err))
		} else {
			t.log.Info("token read again", zap.String("file", t.file))
		}
	}
	return t.digest
}

// is reports whether text is the token. It takes as long for any text of that length.
func (t *token) is(text string) bool {
	if t == nil {
		return false
	}
	want, shown := t.sum(), sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(want[:], shown[:]) == 1
}
