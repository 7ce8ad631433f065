package state

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request to resign is of one term, and is made and acted on only while that is held.
func TestAskToResign(t *testing.T) {
	f := setup(t)
	r, err := f.AskToResign(t.Context(), f.term, "ann", "the machine goes")
	require.NoError(t, err)
	require.Equal(t, f.term.Revision, r.Term)
	again, err := f.AskToResign(t.Context(), f.term, "bob", "me too")
	require.NoError(t, err)
	require.Equal(t, r, again, "the first one stands")

	all, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, r, all[0].Request)

	_, err = f.AskToResign(t.Context(), Term{Key: f.term.Key, Revision: f.term.Revision - 1}, "ann", "")
	require.ErrorIs(t, err, ErrNotLeading, "that term is over")
	other := Term{Key: f.term.Key, Revision: f.term.Revision - 1}
	_, err = f.Drop(t.Context(), other, Acted{Standing: all[0]})
	require.ErrorIs(t, err, ErrNotLeading)
	_, err = f.Drop(t.Context(), f.term, Acted{Standing: all[0]})
	require.NoError(t, err)
	_, err = f.Drop(t.Context(), f.term, Acted{Standing: all[0]})
	require.ErrorIs(t, err, ErrRequestGone, "once")
}

// A request to resign that does not name its term, or another than its key, is none.
func TestDecodeResign(t *testing.T) {
	f := setup(t)
	for key, value := range map[string]string{
		f.keys.Resign(7):          `{"kind":"resign","term":8}`,
		f.keys.Resign(0):          `{"kind":"resign"}`,
		f.keys.Requests() + "one": `{"kind":"resign","term":8}`,
	} {
		_, err := f.client.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	all, err := f.Requests(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}
