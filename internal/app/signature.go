package app

import (
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// signature puts the field instance on each line of a log, for who collects the logs of several. The id
// comes late: loggers are handed on before the scheduler that has it is made.
type signature struct{ id atomic.Pointer[string] }

// know has what is logged from now on signed.
func (s *signature) know(id string) { s.id.Store(&id) }

func (s *signature) sign(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return &signedCore{core, s} }))
}

type signedCore struct {
	zapcore.Core
	by *signature
}

func (c *signedCore) With(fields []zapcore.Field) zapcore.Core {
	return &signedCore{c.Core.With(fields), c.by}
}

func (c *signedCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *signedCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if id := c.by.id.Load(); id != nil {
		fields = append(slices.Clip(fields), zap.String("instance", *id))
	}
	return c.Core.Write(e, fields)
}
