package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Files of ours beside etcd's own folder.
const (
	lockName = "etcdcron.lock"
	// unfinishedName stands there until a new store has been ready once. etcd, ended before that, even by
	// a signal, can leave a store that never becomes ready (its log has no member). Nothing can be in it.
	unfinishedName = "etcdcron.unfinished"
)

// dataDir is a directory that is ours alone.
type dataDir struct {
	path  string // absolute
	fresh bool   // nothing is stored there yet
	lock  *os.File
}

// openDataDir makes the directory if need be, and locks it. etcd itself says too little of a directory
// that it cannot use, and waits for ever for one that is in use.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, badInput("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unusable(path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unusable(path, err)
	}
	d := &dataDir{path: path, lock: lock}
	if err := d.acquire(); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

func (d *dataDir) acquire() error {
	if err := tryLock(d.lock); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(d.lock, 200))
		return inUse(d.path, strings.TrimSpace(string(owner)), err)
	}
	// An etcd that was started by itself knows nothing of our lock, but its database is locked too.
	db, err := os.OpenFile(d.in("member", "snap", "db"), os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.fresh = true
	case err != nil:
		return unusable(d.path, err)
	default:
		defer db.Close() // and unlock it
		if err := tryLock(db); err != nil {
			return inUse(d.path, "", err)
		}
	}
	if err := d.begin(); err != nil {
		return unusable(d.path, err)
	}
	return d.sign("")
}

func (d *dataDir) in(names ...string) string { return filepath.Join(d.path, filepath.Join(names...)) }

// begin removes a new store that was never finished, and notes that a new one is about to be made.
func (d *dataDir) begin() error {
	if _, err := os.Lstat(d.in(unfinishedName)); err == nil {
		d.fresh = true
		if err := os.RemoveAll(d.in("member")); err != nil {
			return err
		}
	}
	if !d.fresh {
		return nil
	}
	return os.WriteFile(d.in(unfinishedName), nil, 0o600)
}

// finish notes that the store has been ready.
func (d *dataDir) finish() error {
	if err := os.Remove(d.in(unfinishedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(d.path, err)
	}
	return nil
}

// signedAt is what stands before the endpoint in an owner's signature.
const signedAt = ", with its etcd at "

// endpointOf is the endpoint in an owner's signature; "" when there is none yet.
func endpointOf(owner string) string {
	_, endpoint, _ := strings.Cut(owner, signedAt)
	return strings.TrimSpace(endpoint)
}

// sign writes down for others who uses the directory.
func (d *dataDir) sign(endpoint string) error {
	text := fmt.Sprintf("etcdcron, process %d", os.Getpid())
	if endpoint != "" {
		text += signedAt + endpoint
	}
	if err := d.lock.Truncate(0); err != nil {
		return unusable(d.path, err)
	}
	if _, err := d.lock.WriteAt([]byte(text+"\n"), 0); err != nil {
		return unusable(d.path, err)
	}
	return nil
}

// unlock lets others use the directory. The file stays: removing it would race with who locks it next.
func (d *dataDir) unlock() {
	_ = d.lock.Truncate(0)
	_ = d.lock.Close()
}

func tryLock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

func inUse(path, owner string, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return unusable(path, fmt.Errorf("cannot be locked: %w", err))
	}
	taken := &takenError{
		fact:   fmt.Sprintf("data directory %s is in use by %s", path, cmp.Or(owner, "another process, perhaps an etcd")),
		advice: "stop it, or join it with --endpoints, or choose another --data-dir",
	}
	taken.ours, taken.etcd = owner != "", endpointOf(owner)
	return taken
}

func unusable(path string, err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		err = fmt.Errorf("%s: %w", pathErr.Path, pathErr.Err)
		if pathErr.Path == path {
			err = pathErr.Err
		}
	}
	return badInput("data directory %s cannot be used: %w; choose another with --data-dir", path, err)
}
