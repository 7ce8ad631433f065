package executor

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// reuseTime is how long a connection is kept for the next request. It is short, since a request that is sent
// just when the server closes the connection fails, and servers keep them for 2 s and more.
const reuseTime = 1500 * time.Millisecond

// transports are what webhooks connect by. Those that have no certificates of their own share one.
type transports struct {
	shared *http.Transport

	mu  sync.Mutex
	own []*ownTransport
}

// ownTransport is that of a webhook with certificate files, as they were last read.
type ownTransport struct {
	mu        sync.Mutex
	sum       [sha256.Size]byte
	transport *http.Transport // nil before the first call
}

func newTransports() *transports { return &transports{shared: newTransport(nil)} }

// newTransport verifies every server's certificate. How long an answer takes is the job's time limit to say.
func newTransport(config *tls.Config) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        reuseTime,
		DisableCompression:     true, // lines of an answer come as they are written
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// of is the transport for a call. Files are read each time, so that those that were renewed count.
func (t *transports) of(w Webhook, own *ownTransport) (*http.Transport, error) {
	if w.CACert == "" && w.Cert == "" {
		return t.shared, nil
	}
	hash := sha256.New()
	var contents [3][]byte
	for i, path := range []string{w.CACert, w.Cert, w.Key} {
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
				err = inner.Err
			}
			return nil, fmt.Errorf("%s cannot be read: %w", path, err)
		}
		contents[i] = content
		fmt.Fprintf(hash, "%d:", len(content))
		hash.Write(content)
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	sum := [sha256.Size]byte(hash.Sum(nil))
	if own.transport != nil && own.sum == sum {
		return own.transport, nil
	}
	config, err := w.tlsConfig(contents[0], contents[1], contents[2])
	if err != nil {
		return nil, err
	}
	if own.transport != nil {
		own.transport.CloseIdleConnections()
	} else {
		t.mu.Lock()
		t.own = append(t.own, own)
		t.mu.Unlock()
	}
	own.sum, own.transport = sum, newTransport(config)
	return own.transport, nil
}

func (w Webhook) tlsConfig(ca, cert, key []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if w.CACert != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", w.CACert)
		}
	}
	if w.Cert != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s are no certificate and its key: %w", w.Cert, w.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// close closes the connections that no call is using.
func (t *transports) close() {
	t.shared.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.own {
		own.mu.Lock()
		own.transport.CloseIdleConnections()
		own.mu.Unlock()
	}
}
