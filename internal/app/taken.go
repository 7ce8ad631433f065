package app

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// takenError is an address or a directory that somebody else uses.
type takenError struct {
	fact   string // what is taken, and by whom
	advice string
	ours   bool   // by an etcdcron, or by an etcd that may be one's: one more can run beside it
	etcd   string // where that etcd answers; "" when that is not known
}

func (e *takenError) Error() string        { return e.fact + "; " + e.advice }
func (e *takenError) Is(target error) bool { return target == ErrBadInput }

// beside is e for somebody who wanted one more instance on this machine: with one command that works,
// since advice on one address alone leads to the next one that is taken.
func (s *server) beside(e *takenError) error {
	if !e.ours {
		return e
	}
	listen := s.cfg.Listen
	if s.listener == nil { // that is the address
		host, _, _ := net.SplitHostPort(listen)
		listen = net.JoinHostPort(host, "0")
	}
	if !s.cfg.Embed {
		return badInput("%s; to run one more beside it, add --listen %s", e.fact, listen)
	}
	etcd := e.etcd
	if etcd == "" {
		etcd = s.neighbor()
	}
	if etcd == "" {
		etcd = "ENDPOINTS-OF-ITS-ETCD"
	}
	argv := append([]string{"etcdcron", "serve", "-c", s.cfg.ConfigFile, "--endpoints", etcd}, s.namespaceFlags()...)
	if listen != DefaultListen {
		argv = append(argv, "--listen", listen)
	}
	return badInput("%s; to run one more beside it: %s", e.fact, term.CommandLine(argv...))
}

// neighbor is the etcd of another etcdcron on this machine: of the one that uses our data directory, or
// whatever etcd has the address of ours. "" when there is none.
func (s *server) neighbor() string {
	owner, _ := os.ReadFile(filepath.Join(s.cfg.DataDir, lockName)) // what cannot be read says nothing
	for _, endpoint := range []string{endpointOf(string(owner)), s.cfg.EtcdListen} {
		if _, port, _ := net.SplitHostPort(endpoint); port == "" || port == "0" {
			continue
		}
		if version, at := etcdAt(endpoint); version != "" {
			return at
		}
	}
	return ""
}

// namespaceFlags are the flags that say where everything is kept, as far as they are needed.
func (s *server) namespaceFlags() (argv []string) {
	if p := s.cfg.Prefix; p != "" && p != state.DefaultPrefix {
		argv = append(argv, "--prefix", p)
	}
	if n := s.cfg.Namespace; n != "" && n != state.DefaultNamespace {
		argv = append(argv, "--namespace", n)
	}
	return argv
}

// lookCommand is how to look at this instance from a second terminal.
func (s *server) lookCommand() string {
	argv := []string{"etcdcron", "jobs"}
	if at := strings.Join(s.cfg.Client.Endpoints, ","); at != DefaultEtcdListen {
		argv = append(argv, "--endpoints", at)
	}
	user, _, _ := strings.Cut(s.cfg.Client.User, ":") // not its password
	for _, f := range []struct{ flag, value string }{
		{"--cacert", s.cfg.Client.CACert},
		{"--cert", s.cfg.Client.Cert},
		{"--key", s.cfg.Client.Key},
		{"--user", user},
		{"--password-file", s.cfg.Client.PasswordFile},
	} {
		if f.value != "" {
			argv = append(argv, f.flag, f.value)
		}
	}
	return term.CommandLine(append(argv, s.namespaceFlags()...)...)
}
