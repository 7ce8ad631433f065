package main

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheFirstInstanceThatComesIsHeldOnce(t *testing.T) {
	dir := t.TempDir()
	demo, a, b := &stops{dir: dir, instance: "demo"}, &stops{dir: dir, instance: "a"}, &stops{dir: dir, instance: "b"}
	isHeld := func() bool { _, _, held, err := demo.held(); return held && err == nil }
	a.reach(afterCommit, 1000) // nobody is to be held yet
	require.NoError(t, demo.hold(afterCommit, 500))
	a.reach(afterCommit, 400)
	a.reach(beforeBatch, 500)
	require.False(t, isHeld())

	var reaching sync.WaitGroup
	reaching.Go(func() { a.reach(afterCommit, 600) })
	require.Eventually(t, isHeld, time.Minute, time.Millisecond)
	instance, account, _, err := demo.held()
	require.NoError(t, err)
	require.Equal(t, "a", instance)
	require.EqualValues(t, 600, account)
	b.reach(afterCommit, 700) // goes on
	require.NoError(t, demo.release())
	reaching.Wait()
	require.False(t, isHeld())
	b.reach(afterCommit, 800)
	require.False(t, isHeld())
}

func TestTheWorkDoesNotOutrunTheDemo(t *testing.T) {
	demo := &stops{dir: t.TempDir(), instance: "demo"}
	demo.pace(t.Context(), 1000) // there is no limit yet
	require.NoError(t, demo.limit(500))
	demo.pace(t.Context(), 400)
	done := make(chan struct{})
	go func() {
		demo.pace(t.Context(), 500)
		close(done)
	}()
	select {
	case <-done:
		require.Fail(t, "it did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	require.NoError(t, demo.limit(600))
	<-done
	(*stops)(nil).pace(t.Context(), 1) // outside of the demo
	(*stops)(nil).reach(beforeBatch, 1)
}
