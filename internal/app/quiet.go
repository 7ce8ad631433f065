package app

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Entries of one text that a library may log in a time. An outage makes etcd's client say the same
// several times a second.
const (
	quietTick  = time.Minute
	quietFirst = 1
)

// quiet is log for a library: under a name, from level up, and each text at most once a minute. A log
// that is set to debug gets all of it.
func quiet(log *zap.Logger, name string, level zapcore.LevelEnabler) *zap.Logger {
	if log == nil {
		return zap.NewNop()
	}
	log = log.Named(name).WithOptions(zap.AddStacktrace(noLevel{}))
	if log.Core().Enabled(zapcore.DebugLevel) {
		return log
	}
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(&leveled{core, level}, quietTick, quietFirst, 0)
	}))
}

// noise is what etcd and its client say at a level above its worth.
var noise = map[string]bool{
	// Of every call that fails; the caller gets the error, and says what it means.
	"retrying of unary invoker failed": true,
	// It can come too early in the first second of etcd's life, and is tried again after four.
	"failed to update storage version": true,
}

// leveled is a core with a level of its own, that may change.
type leveled struct {
	zapcore.Core
	level zapcore.LevelEnabler
}

func (c *leveled) Enabled(l zapcore.Level) bool { return c.level.Enabled(l) && c.Core.Enabled(l) }

func (c *leveled) With(fields []zapcore.Field) zapcore.Core {
	return &leveled{c.Core.With(fields), c.level}
}

func (c *leveled) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.level.Enabled(e.Level) || noise[e.Message] {
		return ce
	}
	return c.Core.Check(e, ce)
}

type noLevel struct{}

func (noLevel) Enabled(zapcore.Level) bool { return false }

// lastWords turns what a library would end the process with into an error: etcd logs at fatal level when
// its disk is full, and zap would then exit, leaving jobs behind. The goroutine that said it ends in
// place of the process.
type lastWords chan error

// OnWrite implements [zapcore.CheckWriteHook].
func (w lastWords) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	select {
	case w <- saidBy(ce.Message, fields):
	default: // the first one counts
	}
	runtime.Goexit()
}

func saidBy(message string, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			return fmt.Errorf("%s: %w", message, err)
		}
	}
	return errors.New(message)
}
