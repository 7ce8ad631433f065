package app

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

const aToken = "0123456789abcdef0123456789abcdef"

func TestCheckHTTP(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(aToken), 0o600))
	missing := token + "x"
	for name, tc := range map[string]struct {
		listen   string
		insecure bool
		http     HTTPConfig
		want     string
	}{
		"loopback":             {listen: "127.0.0.1:0"},
		"loopback, a token":    {listen: "127.0.0.1:0", http: HTTPConfig{Token: httpapi.Secret{File: token}}},
		"open":                 {listen: "0.0.0.0:0", want: "would be open to other machines, without authentication; use 127.0.0.1:0, give --token-file or --tls-client-ca, or add --insecure"},
		"open, insecure":       {listen: "0.0.0.0:0", insecure: true},
		"open, a token":        {listen: "0.0.0.0:0", http: HTTPConfig{Token: httpapi.Secret{Value: aToken}}},
		"open, for readers":    {listen: "0.0.0.0:0", http: HTTPConfig{ReadToken: httpapi.Secret{File: token}}},
		"open, TLS alone":      {listen: "0.0.0.0:0", http: HTTPConfig{Cert: missing, Key: missing}, want: "no such file"},
		"no token":             {listen: "127.0.0.1:0", http: HTTPConfig{Token: httpapi.Secret{File: missing}}, want: "no such file"},
		"two tokens":           {listen: "127.0.0.1:0", http: HTTPConfig{Token: httpapi.Secret{File: token, Value: aToken}}, want: "in --token-file, and in $ETCDCRON_TOKEN; give one"},
		"two readers' tokens":  {listen: "127.0.0.1:0", http: HTTPConfig{ReadToken: httpapi.Secret{File: token, Value: aToken}}, want: "in $ETCDCRON_READ_TOKEN; give one"},
		"a short token":        {listen: "127.0.0.1:0", http: HTTPConfig{Token: httpapi.Secret{Value: "x"}}, want: "needs 16 at least"},
		"half a pair":          {listen: "127.0.0.1:0", http: HTTPConfig{Cert: token}, want: "--tls-cert and --tls-key belong together"},
		"certificates, no TLS": {listen: "127.0.0.1:0", http: HTTPConfig{ClientCA: token}, want: "--tls-client-ca needs --tls-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(ServeConfig{Listen: tc.listen, Insecure: tc.insecure, HTTP: tc.http})
			err := s.checkHTTP()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// An instance that asks for a token answers with it, and of what is in its etcd.
func TestServe_Token(t *testing.T) {
	t.Parallel()
	cfg := embed1(t, onceAYear)
	cfg.HTTP.Token.Value = aToken
	i := begin(t, cfg)
	i.awaitReadiness("it leads", leads)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	ask := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.cfg.Listen+"/v1/jobs/rare", nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Eventually(t, func() bool { return ask(aToken) == http.StatusOK }, patience, 50*time.Millisecond)
	require.Equal(t, http.StatusUnauthorized, ask(""))
	require.NoError(t, i.end())
}
