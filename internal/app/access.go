package app

import (
	"net"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

// HTTPConfig is who may use HTTP, and how it shows itself.
type HTTPConfig struct {
	// Token lets those do everything who have it, ReadToken those read. Each is in a file, which is read again when
	// it changes, or given as it is, not both. Default none.
	Token, ReadToken httpapi.Secret
	// Cert and Key are files in PEM, which are read again when they change. With them HTTP uses TLS.
	Cert, Key string
	// ClientCA is a file in PEM: clients with a certificate that one of those in it has signed may do everything.
	// It needs Cert and Key. Default none.
	ClientCA string
	// Hosts are the names that HTTP is asked by on loopback, beside localhost.
	Hosts []string
}

// checkHTTP finds every fault of how HTTP is to be used, and prepares it.
func (s *server) checkHTTP() (err error) {
	c, log := &s.cfg.HTTP, s.log.Named("http")
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return badInput("--tls-cert and --tls-key belong together")
	case c.ClientCA != "" && c.Cert == "":
		return badInput("--tls-client-ca needs --tls-cert and --tls-key: clients show their certificates with TLS")
	case c.Token.File != "" && c.Token.Value != "":
		return badInput("there are two tokens of operators: in --token-file, and in $ETCDCRON_TOKEN; give one")
	case c.ReadToken.File != "" && c.ReadToken.Value != "":
		return badInput("there are two tokens of readers: in --read-token-file, and in $ETCDCRON_READ_TOKEN; give one")
	}
	if s.access, err = httpapi.NewAccess(c.Token, c.ReadToken, c.ClientCA != "", log); err != nil {
		return badInput("HTTP: %w", err)
	}
	if c.Cert != "" {
		if s.tls, err = httpapi.LoadTLS(c.Cert, c.Key, c.ClientCA, log); err != nil {
			return badInput("HTTP: %w", err)
		}
	}
	err = checkListen("--listen", s.cfg.Listen, DefaultListen, s.cfg.Insecure || s.access != nil, "give --token-file or --tls-client-ca, ")
	if err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(s.cfg.Listen); s.access != nil && s.tls == nil && !isLoopback(host) {
		log.Warn("tokens go over the network as they are: without --tls-cert and --tls-key whoever listens on it can take them")
	}
	return nil
}
