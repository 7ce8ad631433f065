package app

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	j := newJournal(zapcore.InfoLevel)
	level := zap.NewAtomicLevelAt(zapcore.WarnLevel)
	log := quiet(j.log, "etcd", level).With(zap.Int("member", 1))
	for range 100 {
		log.Info("not worth it")
		log.Warn("slow disk")
		log.Warn("retrying of unary invoker failed")
		log.Error("slow disk")
	}
	require.Equal(t, 2, j.Len(), "each text once a minute at each level: %s", j.text())
	require.Equal(t, "etcd", j.All()[0].LoggerName)
	require.EqualValues(t, 1, j.All()[0].ContextMap()["member"])

	level.SetLevel(silent)
	log.Error("closing is noisy")
	require.Equal(t, 2, j.Len())
	require.NotPanics(t, func() { quiet(nil, "etcd", level).Error("to nobody") })
}

func TestQuietIsNotQuietAtDebug(t *testing.T) {
	t.Parallel()
	j := newJournal(zapcore.DebugLevel)
	log := quiet(j.log, "etcd", zapcore.WarnLevel)
	for range 100 {
		log.Debug("who wants to know")
	}
	require.Equal(t, 100, j.Len())
}
