package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
)

// LoadTLS is how a server shows itself: by the certificate and the key in two files in PEM, which are read again
// when they change, so that a renewed certificate counts for the next connection. A pair that cannot be used leaves
// the last one in place, and the log says so. clientCA, if not "", is a file with the certificates that clients' are
// verified by, read once; a client need not have one.
func LoadTLS(certFile, keyFile, clientCA string, log *zap.Logger) (*tls.Config, error) {
	if log == nil {
		log = zap.NewNop()
	}
	p := &pair{certFile: certFile, keyFile: keyFile, log: log}
	if err := p.load(); err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.current(), nil },
	}
	if clientCA != "" {
		pem, err := os.ReadFile(clientCA)
		if err != nil {
			return nil, err
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in it", clientCA)
		}
		cfg.ClientAuth = tls.VerifyClientCertIfGiven // a probe has none, and others have a token
	}
	return cfg, nil
}

// pair is a certificate and its key, as they were last read.
type pair struct {
	certFile, keyFile string
	log               *zap.Logger

	mu        sync.Mutex
	cert      *tls.Certificate
	certRead  stamp
	keyRead   stamp
	triedCert stamp // likewise, of a pair that could not be used
	triedKey  stamp
}

func (p *pair) load() error {
	certNow, err := stampOf(p.certFile)
	if err != nil {
		return err
	}
	keyNow, err := stampOf(p.keyFile)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", p.certFile, p.keyFile, err)
	}
	p.cert, p.certRead, p.keyRead = &cert, certNow, keyNow
	return nil
}

// current is the certificate for a connection that begins now.
func (p *pair) current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	certNow, certErr := stampOf(p.certFile)
	keyNow, keyErr := stampOf(p.keyFile)
	changed := certNow != p.certRead || keyNow != p.keyRead
	if !changed || certNow == p.triedCert && keyNow == p.triedKey && certErr == nil && keyErr == nil {
		return p.cert
	}
	if err := p.load(); err != nil {
		if certNow != p.triedCert || keyNow != p.triedKey { // once for each change
			p.log.Warn("the certificate has changed and cannot be used; the last one stays in use", zap.Error(err))
		}
		p.triedCert, p.triedKey = certNow, keyNow
		return p.cert
	}
	p.log.Info("certificate read again", zap.String("file", p.certFile))
	return p.cert
}
