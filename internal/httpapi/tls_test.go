package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key, _ = a.sign(template, nil)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(template *x509.Certificate, issuer *authority) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.t, err)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key, der
}

// files writes a certificate for a name, and its key, as they were at a time.
func (a *authority) files(certFile, keyFile, name string, at int) {
	a.t.Helper()
	_, key, der := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		require.NoError(a.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		require.NoError(a.t, os.Chtimes(file, time.Time{}, time.Unix(int64(at), 0)))
	}
}

// A renewed certificate counts for the next connection; a pair that does not fit leaves the last one in use. Who shows
// a certificate may do everything; who shows none, or another authority's, gets nothing.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, other := newAuthority(t), newAuthority(t)
	cert, key, caFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600))
	ca.files(cert, key, "first", 1)
	cfg, err := httpapi.LoadTLS(cert, key, caFile, nil)
	require.NoError(t, err)
	access, err := httpapi.NewAccess(httpapi.Secret{}, httpapi.Secret{}, true, nil)
	require.NoError(t, err)
	s := start(t, func(c *httpapi.Config) { c.TLS, c.Access = cfg, access })

	as := func(client *authority) (name string, status int, post int) {
		t.Helper()
		tlsConfig := &tls.Config{RootCAs: ca.pool}
		if client != nil {
			clientCert, clientKey := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
			client.files(clientCert, clientKey, "jo", 1)
			pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
			require.NoError(t, err)
			tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		s.web.Transport = transport
		got := s.get("/v1/leader")
		conn, err := tls.Dial("tcp", s.url[len("https://"):], tlsConfig)
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, got.status, s.post("/v1/jobs/quick/trigger", "").status
	}
	name, status, post := as(ca)
	require.Equal(t, "first", name)
	require.Equal(t, 200, status)
	require.Equal(t, 202, post)
	require.Eventually(t, func() bool {
		page, err := s.store.History(t.Context(), quick, "", 1)
		return err == nil && len(page.Runs) == 1 && page.Runs[0].RequestedBy == "certificate jo from 127.0.0.1"
	}, patience, 5*time.Millisecond)
	_, status, post = as(nil)
	require.Equal(t, 401, status)
	require.Equal(t, 401, post)

	ca.files(cert, key, "second", 2)
	name, _, _ = as(ca)
	require.Equal(t, "second", name)
	ca.files(cert, filepath.Join(dir, "elsewhere"), "third", 3) // the key is not there yet
	name, _, _ = as(ca)
	require.Equal(t, "second", name)
	ca.files(cert, key, "fourth", 4)
	name, _, _ = as(ca)
	require.Equal(t, "fourth", name)

	stranger, err := (&http.Client{Transport: strangerTransport(t, ca, other)}).Get(s.url + "/livez")
	if err == nil {
		_ = stranger.Body.Close()
	}
	require.Error(t, err, "a certificate of another authority is refused by TLS itself")
}

func strangerTransport(t *testing.T, ca, other *authority) *http.Transport {
	t.Helper()
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	other.files(cert, key, "eve", 1)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs:              ca.pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}}
}

func TestLoadTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t)
	cert, key, empty := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "empty")
	ca.files(cert, key, "a", 1)
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, files := range map[string][3]string{
		"no such file":               {cert, key + "x"},
		"failed to find any PEM":     {empty, key},
		"there is no certificate in": {cert, key, empty},
	} {
		_, err := httpapi.LoadTLS(files[0], files[1], files[2], nil)
		require.ErrorContains(t, err, want)
	}
}
