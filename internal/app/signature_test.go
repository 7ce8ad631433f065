package app

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A logger that was handed on before the id was known signs its lines all the same.
func TestSignature(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	var s signature
	early := s.sign(zap.New(core)).With(zap.String("job", "a"))
	early.Info("before")
	s.know("a-1-x")
	early.Info("after", zap.Int("n", 1))
	early.Debug("below the level")
	entries := logs.AllUntimed()
	require.Len(t, entries, 2)
	require.Equal(t, map[string]any{"job": "a"}, entries[0].ContextMap())
	require.Equal(t, map[string]any{"job": "a", "n": int64(1), "instance": "a-1-x"}, entries[1].ContextMap())
}

func TestLookCommand(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]ServeConfig{
		"etcdcron jobs": {Client: ClientConfig{Endpoints: []string{DefaultEtcdListen}}, Namespace: "default"},
		"etcdcron jobs --endpoints https://a:1,https://b:1 --cacert 'my ca.pem' --user root --prefix /p --namespace n": {
			Client: ClientConfig{Endpoints: []string{"https://a:1", "https://b:1"}, CACert: "my ca.pem", User: "root:secret"},
			Prefix: "/p", Namespace: "n",
		},
	} {
		require.Equal(t, want, newServer(cfg).lookCommand())
	}
}
