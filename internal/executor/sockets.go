package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// dirPrefix begins the names of our directories, and of nobody else's.
	dirPrefix = "etcdcron-run."
	// maxSocketPath is what fits into a socket's address: 104 bytes with the NUL on macOS, 108 on Linux.
	maxSocketPath = 103
	// ownPath is the length of what is added to the directory for temporary files: our directory with the number
	// that os.MkdirTemp makes up, and the socket.
	ownPath = len("/"+dirPrefix+"4294967295") + len("/01234567")
)

// sockets make a unix socket for each run of a command, in a directory that is this process's alone. The
// directory is locked (flock) for as long as the process lives, so what a killed one has left behind is known,
// and taken away by the next that makes its own. Safe for concurrent use.
//
// The directory stays the scheduler's also for a command that runs as another user, so that nobody can put
// something else in a socket's place; the socket is that user's, and the kernel lets only its owner connect.
type sockets struct {
	log  *zap.Logger
	base string        // where the directory is made; default that for temporary files
	wait time.Duration // how long a client may take; default clientTime

	mu     sync.Mutex
	lock   *os.File // the directory; nil before the first run
	path   string
	warned bool
}

// open begins to listen for a run of whoever id is. It returns nil, and logs why, if there can be no socket: a
// command that does not need it runs all the same.
func (s *sockets) open(ctx context.Context, run notebook, id *identity, log *zap.Logger) *noteServer {
	if s == nil {
		return nil
	}
	listener, err := s.listen(id)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.warned {
			s.warned = true
			s.log.Warn("commands have no socket, so they cannot report progress and checkpoints; "+
				"the directory for temporary files (TMPDIR) must be one that can be written to", zap.Error(err))
		}
		return nil
	}
	return serveNotes(ctx, run, listener, cmp.Or(s.wait, clientTime), log)
}

func (s *sockets) listen(id *identity) (*net.UnixListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		if err := s.make(); err != nil {
			return nil, err
		}
	}
	listener, err := listenIn(s.path, id)
	if errors.Is(err, fs.ErrNotExist) { // somebody has tidied up
		s.lock.Close()
		s.lock = nil
		if err := s.make(); err != nil {
			return nil, err
		}
		listener, err = listenIn(s.path, id)
	}
	return listener, err
}

func listenIn(dir string, id *identity) (*net.UnixListener, error) {
	path := filepath.Join(dir, fmt.Sprintf("%08x", rand.Uint32()))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if id.credential() != nil {
		err = os.Lchown(path, int(id.uid), int(id.gid))
	}
	if err = errors.Join(err, os.Chmod(path, 0o600)); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// make makes the directory, and takes away those of processes that are gone.
func (s *sockets) make() error {
	base, err := s.baseDir()
	if err != nil {
		return err
	}
	sweep(base, s.log)
	path, err := os.MkdirTemp(base, dirPrefix)
	if err != nil {
		return err
	}
	lock, err := lockDir(path)
	if err != nil {
		os.Remove(path) // or the next process does
		return fmt.Errorf("%s cannot be locked: %w", path, err)
	}
	if os.Geteuid() == 0 { // commands may run as other users, who may pass but not look around
		if err := lock.Chmod(0o711); err != nil {
			lock.Close()
			return err
		}
	}
	s.lock, s.path = lock, path
	return nil
}

// baseDir is where our directory is made. An address has no room for every path.
func (s *sockets) baseDir() (string, error) {
	base := s.base
	if base == "" {
		base = os.TempDir()
	}
	base, err := filepath.Abs(base)
	if err == nil && len(base)+ownPath > maxSocketPath {
		return "/tmp", nil
	}
	return base, err
}

// lockDir opens and locks a directory. It fails if another process has it locked, or path is not it any more.
func lockDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), path)
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		var ours, there fs.FileInfo
		if ours, err = dir.Stat(); err == nil {
			there, err = os.Lstat(path)
		}
		if err == nil && !os.SameFile(ours, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// sweep takes away the directories of ours that no living process has locked.
func sweep(base string, log *zap.Logger) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // make says it
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), dirPrefix) {
			continue
		}
		path := filepath.Join(base, e.Name())
		var is unix.Stat_t
		if unix.Lstat(path, &is) != nil || is.Uid != uint32(os.Geteuid()) { //nolint:gosec // ids are 32 bits
			continue
		}
		lock, err := lockDir(path)
		if err != nil {
			continue // its process lives, or somebody else was faster
		}
		if err := removeSockets(path); err != nil {
			log.Debug("the sockets of a process that is gone cannot be removed", zap.Error(err))
		}
		lock.Close()
	}
}

// removeSockets removes a directory with sockets in it, and nothing else: what is no socket of ours stays, and
// the directory with it.
func removeSockets(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSocket {
			err = errors.Join(err, os.Remove(filepath.Join(path, e.Name())))
		}
	}
	return errors.Join(err, os.Remove(path))
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return
	}
	if err := removeSockets(s.path); err != nil {
		s.log.Debug("the directory of the sockets cannot be removed", zap.Error(err))
	}
	s.lock.Close()
	s.lock = nil
}
