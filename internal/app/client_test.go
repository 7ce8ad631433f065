package app

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		endpoints string
		tls       bool
		want      string // of the error; "" for none
	}{
		{endpoints: "127.0.0.1:2379"},
		{endpoints: "etcd-0.etcd:2379,etcd-1.etcd:2379"},
		{endpoints: "http://127.0.0.1:2379"},
		{endpoints: "https://etcd:2379", tls: true},
		{endpoints: "https://etcd:2379/"},
		{endpoints: "[::1]:2379", tls: true},
		{endpoints: "unix:///run/etcd.sock"},
		{endpoints: "unixs:///run/etcd.sock"},
		{endpoints: "", want: `endpoint "" is not host:port; try "127.0.0.1:2379"`},
		{endpoints: "127.0.0.1", want: `try "127.0.0.1:2379"`},
		{endpoints: "https://etcd", want: `try "https://etcd:2379"`},
		{endpoints: "::1", want: `try "[::1]:2379"`},
		{endpoints: ":2379", want: `try "127.0.0.1:2379"`},
		{endpoints: "etcd:http", want: `"http" is not a port`},
		{endpoints: "etcd:0", want: `"0" is not a port`},
		{endpoints: "etcd:65536", want: `"65536" is not a port`},
		{endpoints: "ftp://etcd:2379", want: `"ftp://" is not a scheme`},
		{endpoints: "http://etcd:2379/v3", want: "nothing may follow the port"},
		{endpoints: "http://root:secret@etcd:2379", want: "holds a user"},
		{endpoints: "unix://", want: "has no path"},
		{endpoints: "http://%zz:1", want: "is not an address"},
		{endpoints: "http://a:1,https://b:1", want: "some use TLS and some do not"},
		{endpoints: "http://a:1", tls: true, want: "without TLS, though --cacert or --cert is given"},
	} {
		t.Run(tc.endpoints, func(t *testing.T) {
			t.Parallel()
			err := checkEndpoints(strings.Split(tc.endpoints, ","), tc.tls)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	require.ErrorIs(t, checkEndpoints(nil, false), ErrBadInput)
}

// What is wrong with files and names is told at once: nobody listens at the endpoint.
func TestConnectBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junk, secret := filepath.Join(dir, "junk.pem"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(junk, []byte("junk"), 0o600))
	require.NoError(t, os.WriteFile(secret, []byte("pw\n"), 0o600))
	missing := filepath.Join(dir, "missing")
	for name, tc := range map[string]struct {
		cfg  ClientConfig
		want string
	}{
		"no ca":         {ClientConfig{CACert: missing}, "--cacert: open " + missing},
		"junk ca":       {ClientConfig{CACert: junk}, "holds no certificate in PEM"},
		"cert alone":    {ClientConfig{Cert: junk}, "--cert and --key belong together"},
		"key alone":     {ClientConfig{Key: junk}, "--cert and --key belong together"},
		"junk pair":     {ClientConfig{Cert: junk, Key: junk}, "--cert " + junk},
		"no user":       {ClientConfig{PasswordFile: secret}, "--password-file needs --user"},
		"no password":   {ClientConfig{User: "root"}, `user "root" has no password`},
		"password file": {ClientConfig{User: "root", PasswordFile: missing}, "--password-file: open " + missing},
		"two passwords": {ClientConfig{User: "root:pw", PasswordFile: secret}, "given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.cfg.Endpoints, tc.cfg.DialTimeout = []string{freePort(t)}, time.Hour
			_, err := Connect(t.Context(), tc.cfg)
			require.ErrorIs(t, err, ErrBadInput)
			require.NotErrorIs(t, err, ErrNoConnection)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestConnectToNobody(t *testing.T) {
	t.Parallel()
	notEtcd := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(notEtcd.Close)
	withTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	withTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	withTLS.EnableHTTP2 = true
	withTLS.StartTLS()
	t.Cleanup(withTLS.Close)
	secured := withTLS.Listener.Addr().String()
	free, silent, plain := freePort(t), deaf(t), newEtcd(t).endpoint
	for name, tc := range map[string]struct{ endpoint, reason, hint string }{
		"refused":    {free, "connection refused", "etcdcron serve"},
		"no host":    {"nobody.invalid:2379", "nobody.invalid", "--endpoints"},
		"not etcd":   {notEtcd.Listener.Addr().String(), "HTTP/1.1", "something else listens there"},
		"wants TLS":  {secured, "", "does it use TLS?"},
		"no TLS":     {"https://" + plain, "handshake failed", "it may not use TLS"},
		"unknown CA": {"https://" + secured, "x509", "check --cacert"},
		"never says": {silent, "", "check --endpoints"},
		"no socket":  {"unix://" + filepath.Join(t.TempDir(), "etcd.sock"), "no such file", "is it running?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := Connect(t.Context(), ClientConfig{
				Endpoints: []string{tc.endpoint}, DialTimeout: 3 * time.Second, CommandTimeout: time.Second, // a handshake takes long here and there
			})
			require.Less(t, time.Since(start), 20*time.Second)
			require.ErrorIs(t, err, ErrNoConnection)
			require.NotErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, "no connection to etcd at "+tc.endpoint+": ")
			require.ErrorContains(t, err, tc.reason)
			require.ErrorContains(t, err, tc.hint)
			require.NotContains(t, err.Error(), "rpc error")
			require.NotContains(t, err.Error(), "\n")
			t.Log(err)
		})
	}
}

func TestConnectGivesUpWhenToldTo(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	for name, user := range map[string]string{"with a user": "root:pw", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
			_, err := Connect(ctx, ClientConfig{Endpoints: []string{freePort(t)}, User: user, DialTimeout: time.Hour})
			require.ErrorIs(t, err, why)
		})
	}
}

// A client must not end with the context that it was made with: what is drained still needs it.
func TestClientOutlivesContext(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	ctx, cancel := context.WithCancel(t.Context())
	client, err := Connect(ctx, ClientConfig{Endpoints: []string{e.endpoint}})
	require.NoError(t, err)
	defer client.Close()
	cancel()
	_, err = client.Put(t.Context(), "k", "v")
	require.NoError(t, err)
}

func TestConnectWithUsers(t *testing.T) {
	t.Parallel()
	e := newEtcd(t)
	ctx := t.Context()
	admin := connectTo(t, e.endpoint).client
	_, err := admin.UserAdd(ctx, "root", "pw")
	require.NoError(t, err)
	_, err = admin.UserGrantRole(ctx, "root", "root")
	require.NoError(t, err)
	_, err = admin.UserAdd(ctx, "cron", "pw") // may read nothing
	require.NoError(t, err)
	_, err = admin.AuthEnable(ctx)
	require.NoError(t, err)

	try := func(cfg ClientConfig) (*clientv3.Client, error) {
		cfg.Endpoints, cfg.DialTimeout = []string{e.endpoint}, patience // hashing a password takes its time
		return Connect(ctx, cfg)
	}
	_, err = try(ClientConfig{})
	require.ErrorIs(t, err, ErrBadInput)
	require.ErrorContains(t, err, "wants a user; give --user and --password-file")
	_, err = try(ClientConfig{User: "root:wrong"})
	require.ErrorIs(t, err, ErrBadInput)
	require.ErrorContains(t, err, `does not take user "root" with this password`)
	require.NotContains(t, err.Error(), "wrong")

	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("pw\n"), 0o600))
	client, err := try(ClientConfig{User: "cron", PasswordFile: secret})
	require.NoError(t, err, "a user without a role has reached etcd all the same")
	require.NoError(t, client.Close())
}

// An outage of minutes must not make the client wait for minutes more, nor fill the log.
func TestClientComesBackQuietly(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freePort(t)
	e, err := startEmbedded(t.Context(), dir, addr, nil)
	require.NoError(t, err)
	j := newJournal(zapcore.InfoLevel)
	c, err := dial(t.Context(), ClientConfig{Endpoints: []string{addr}, Logger: j.log}, zapcore.WarnLevel)
	require.NoError(t, err)
	defer c.close()
	require.NoError(t, c.reach(t.Context()))
	e.stop()

	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := c.client.Get(ctx, "k")
		cancel()
		require.Error(t, err)
	}
	require.LessOrEqual(t, j.Len(), 3, j.text())

	e, err = startEmbedded(t.Context(), dir, addr, nil)
	require.NoError(t, err)
	defer e.stop()
	ctx, cancel := context.WithTimeout(t.Context(), reconnectLimit+2*time.Second)
	defer cancel()
	_, err = c.client.Get(ctx, "k")
	require.NoError(t, err)
}
