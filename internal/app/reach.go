package app

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// How etcd is waited for at the start: pauses that double up to the limit, and how often it is said.
const (
	awaitFirst = 250 * time.Millisecond
	awaitLimit = 5 * time.Second
	awaitSay   = 30 * time.Second
)

// reach returns once there is an etcd that answers.
func (s *server) reach(ctx context.Context) (err error) {
	if s.cfg.Embed {
		if s.etcd, err = startEmbedded(ctx, s.cfg.DataDir, s.cfg.EtcdListen, s.log); err != nil {
			return err
		}
		message := "embedded etcd opened its store"
		if s.etcd.dir.fresh {
			message = "embedded etcd made a new, empty store"
		}
		s.log.Info(message, zap.String("data_dir", s.etcd.dir.path), zap.String("endpoint", s.etcd.endpoint))
		s.cfg.Client.Endpoints = []string{s.etcd.endpoint}
	}
	return s.await(ctx)
}

// await tries until etcd answers, ctx ends, or there is no point in trying.
func (s *server) await(ctx context.Context) error {
	var said time.Time
	for pause := awaitFirst; ; pause = min(2*pause, awaitLimit) {
		err := s.connect(ctx)
		if err == nil {
			if !said.IsZero() {
				s.log.Info("etcd answers now", zap.Strings("endpoints", s.cfg.Client.Endpoints))
			}
			return nil
		}
		w := (*noAnswerError)(nil)
		if !errors.As(err, &w) {
			return err
		}
		s.health.waiting.Store(w)
		if said.IsZero() || time.Since(said) >= awaitSay {
			said = time.Now()
			s.log.Warn("etcd does not answer yet; trying on", zap.Strings("endpoints", w.endpoints),
				zap.String("reason", w.reason), zap.String("hint", w.hint))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-s.failed:
			return err
		case err := <-s.etcdFailed():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// connect makes the client, if there is none yet, and asks etcd for a sign of life.
func (s *server) connect(ctx context.Context) (err error) {
	if s.conn == nil {
		if s.conn, err = dial(ctx, s.cfg.Client, zapcore.WarnLevel); err != nil {
			s.conn = nil
			return err
		}
	}
	return s.conn.reach(ctx)
}

// etcdFailed yields when our own etcd has stopped by itself.
func (s *server) etcdFailed() <-chan error {
	if s.etcd == nil {
		return nil
	}
	return s.etcd.failed
}
