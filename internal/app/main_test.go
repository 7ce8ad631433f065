package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) {
	// An etcd whose database is damaged never returns from its start (TestEmbeddedDamaged).
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/etcd/server/v3/storage.OpenBackend"))
}

// journal is a log that tests read, and wait for.
type journal struct {
	*observer.ObservedLogs
	log *zap.Logger

	mu      sync.Mutex
	changed chan struct{}
}

func newJournal(level zapcore.Level) *journal {
	core, logs := observer.New(level)
	j := &journal{ObservedLogs: logs, changed: make(chan struct{})}
	j.log = zap.New(zapcore.RegisterHooks(core, func(zapcore.Entry) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		close(j.changed)
		j.changed = make(chan struct{})
		return nil
	}))
	return j
}

// await returns the first entry whose message begins with text, once it is there.
func (j *journal) await(t *testing.T, text string) observer.LoggedEntry {
	t.Helper()
	limit := time.After(patience)
	for {
		j.mu.Lock()
		changed := j.changed
		j.mu.Unlock()
		for _, e := range j.All() {
			if strings.HasPrefix(e.Message, text) {
				return e
			}
		}
		select {
		case <-changed:
		case <-limit:
			require.Failf(t, "not logged in time", "%q; there is: %s", text, j.text())
		}
	}
}

func (j *journal) text() string {
	var b strings.Builder
	for _, e := range j.All() {
		b.WriteString("\n" + e.Level.String() + " " + e.LoggerName + " " + e.Message)
	}
	return b.String()
}

// newEtcd is an etcd of our own, on a free port, with a new directory.
func newEtcd(t *testing.T) *embedded {
	t.Helper()
	e, err := startEmbedded(t.Context(), t.TempDir(), "127.0.0.1:0", zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(e.stop)
	return e
}

var nextPort atomic.Int32

// freePort is an address on which nothing listens. It is below those that the kernel gives to outgoing
// connections, so that none of the tests beside this one takes it in between.
func freePort(t *testing.T) string {
	t.Helper()
	const first, last = 10000, 32000
	nextPort.CompareAndSwap(0, first+rand.Int32N(last-first))
	for range 1000 {
		port := first + nextPort.Add(1)%(last-first)
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			require.NoError(t, ln.Close())
			return ln.Addr().String()
		}
	}
	require.Fail(t, "no port is free")
	return ""
}

// deaf is an address where something takes connections and never says a word.
func deaf(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		all.Wait()
	})
	return ln.Addr().String()
}

func connectTo(t *testing.T, endpoints ...string) *connection {
	t.Helper()
	c, err := dial(t.Context(), ClientConfig{Endpoints: endpoints}, zapcore.ErrorLevel)
	require.NoError(t, err)
	t.Cleanup(c.close)
	require.NoError(t, c.reach(context.WithoutCancel(t.Context())))
	return c
}

func zapError(text string) zap.Field { return zap.Error(errors.New(text)) }
