package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// point is a place in the work where the demo can hold an instance, to kill or freeze it just there.
type point string

const (
	beforeBatch     point = "before-batch"     // the instance believes to be the owner, and is about to charge
	inTransaction   point = "in-transaction"   // charged, but not committed
	afterCommit     point = "after-commit"     // committed, but not in the checkpoint
	afterCheckpoint point = "after-checkpoint" // etcd has confirmed the checkpoint
)

// stopsVariable names the folder in which the demo and its instances meet.
const stopsVariable = "BILLING_STOPS"

// stops is how the demo holds an instance: whoever comes first to the point that it has named, with the account
// that it has named or a later one. The words are links, since a link appears whole or not at all, and once.
type stops struct {
	dir      string
	instance string
}

// stopsFromEnvironment is nil outside of the demo: nothing is held.
func stopsFromEnvironment(instance string) *stops {
	if dir := os.Getenv(stopsVariable); dir != "" {
		return &stops{dir: dir, instance: instance}
	}
	return nil
}

// reach waits at p, if an instance is to be held there and no other one is.
func (s *stops) reach(p point, account int64) {
	if s == nil {
		return
	}
	wanted, from, err := s.read("wanted")
	if err != nil || point(wanted) != p || account < from || s.write("held", s.instance, account) != nil {
		return
	}
	for !s.there("released") {
		time.Sleep(time.Millisecond)
	}
	s.remove("released")
	s.remove("held") // the last word: nobody is held any more
}

// pace waits while the work is as far as the demo allows, so that it cannot outrun the faults, or until ctx ends.
func (s *stops) pace(ctx context.Context, account int64) {
	for s != nil && ctx.Err() == nil {
		_, limit, err := s.read("limit")
		if err != nil || account < limit {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// limit allows the work to go on until an account.
func (s *stops) limit(account int64) error {
	if err := s.write("next-limit", s.instance, account); err != nil {
		return err
	}
	return os.Rename(filepath.Join(s.dir, "next-limit"), filepath.Join(s.dir, "limit"))
}

// hold asks for the first instance that comes to p with that account or a later one.
func (s *stops) hold(p point, account int64) error { return s.write("wanted", string(p), account) }

// held is the instance that is held, and the account it has come to; ok is false when none is. From then on no
// other one is wanted: who comes later, after this one was killed or frozen or let go, goes on.
func (s *stops) held() (instance string, account int64, ok bool, err error) {
	instance, account, err = s.read("held")
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, false, nil
	}
	s.remove("wanted")
	return instance, account, err == nil, err
}

// release lets the instance go on that is held. When it does, nobody is held any more.
func (s *stops) release() error { return s.write("released", s.instance, 0) }

// died takes back the word of an instance that was held and has died.
func (s *stops) died() { s.remove("held") }

func (s *stops) remove(word string) { _ = os.Remove(filepath.Join(s.dir, word)) }

func (s *stops) write(word, name string, account int64) error {
	return os.Symlink(fmt.Sprintf("%s:%d", name, account), filepath.Join(s.dir, word))
}

func (s *stops) read(word string) (name string, account int64, err error) {
	text, err := os.Readlink(filepath.Join(s.dir, word))
	if err != nil {
		return "", 0, err
	}
	name, number, _ := strings.Cut(text, ":")
	account, err = strconv.ParseInt(number, 10, 64)
	return name, account, err
}

func (s *stops) there(word string) bool {
	_, _, err := s.read(word)
	return err == nil
}
