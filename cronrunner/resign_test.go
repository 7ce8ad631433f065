package cronrunner

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Whoever is asked to hand over does so once, and the next leader is left alone.
func TestResignOnRequest(t *testing.T) {
	b := newBench(t)
	j := Job{Name: "a", Schedule: "0 0 1 1 *", Handler: quick}
	first := b.start(Config{InstanceID: "a"}, j)
	first.waitLeading()
	second := b.start(Config{InstanceID: "b"}, j)
	b.waitCandidates(2)
	info, err := first.Elector().Leader(t.Context())
	require.NoError(t, err)

	term := state.Term{Key: info.Key, Revision: info.Term}
	_, err = b.store.AskToResign(t.Context(), term, "ann", "the machine goes")
	require.NoError(t, err)
	first.waitFor(func(ev Event) bool {
		e, ok := ev.(Deposed)
		return ok && errors.Is(e.Cause, leader.ErrResigned)
	})
	second.waitLeading()
	b.requireNoRequests()
	now, err := second.Elector().Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, second.ID(), now.Instance)
	require.Greater(t, now.Term, info.Term)
	_, err = b.store.AskToResign(t.Context(), term, "ann", "")
	require.ErrorIs(t, err, state.ErrNotLeading, "that term is over")
}

// A request to resign that was left behind by a term that is over ends no other term.
func TestResignOfAnotherTerm(t *testing.T) {
	b := newBench(t)
	key := b.store.Keys().Resign(1)
	_, err := b.client.Put(t.Context(), key, `{"kind":"resign","term":1,"at":"2026-11-30T16:29:35Z"}`)
	require.NoError(t, err)
	i := b.start(Config{InstanceID: "a"}, Job{Name: "a", Schedule: "0 0 1 1 *", Handler: quick})
	i.waitLeading()
	require.Eventually(t, func() bool {
		left, err := b.store.Requests(t.Context())
		return err == nil && len(left) == 0
	}, patience, 5*time.Millisecond)
	h := newHeld(b, Overlap{})
	close(h.release)
	require.NoError(t, i.Register(h.Job))
	require.Equal(t, state.ByHand, h.trigger().Trigger, "it still leads")
	require.True(t, i.leads())
}
