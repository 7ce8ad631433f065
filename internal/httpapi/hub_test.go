package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

func hubOn(t *testing.T) (*hub, *clientv3.Client) {
	t.Helper()
	client := etcdtest.Start(t).Client(t)
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	h := newHub(state.NewStore(client, keys, state.StoreConfig{}))
	t.Cleanup(h.close)
	return h, client
}

// A client that does not take its events is cut off; the others have all of theirs.
func TestASlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	h, client := hubOn(t)
	slow, err := h.subscribe("", 0)
	require.NoError(t, err)
	fast, err := h.subscribe("", 0)
	require.NoError(t, err)
	<-fast.frames // where they begin
	for i := range maxWaiting + 10 {
		_, err := client.Put(t.Context(), h.store.Keys().Control("a"), fmt.Sprintf(`{"paused":%t}`, i%2 == 0))
		require.NoError(t, err)
		require.Len(t, (<-fast.frames).events, 1)
	}
	got := 0
	for range slow.frames { // it is closed, or this does not end
		got++
	}
	require.Equal(t, maxWaiting, got)
	h.mu.Lock()
	require.Len(t, h.clients, 1)
	h.mu.Unlock()
}

// What is kept for those who resume has a bound, and who comes from before it hears that it has missed something.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	h := newHub(state.NewStore(clientv3.NewCtxClient(context.Background()), state.Keys{}, state.StoreConfig{}))
	w := &watching{stop: func() {}}
	h.watch = w
	h.reset(w, 10)
	for rev := int64(11); rev < 1000; rev++ {
		h.changed(w, rev, []*clientv3.Event{{Kv: &mvccpb.KeyValue{Key: []byte("leader/x"), Value: []byte(`"` + strings.Repeat("x", 10_000) + `"`)}}})
		require.LessOrEqual(t, w.size, maxKept)
	}
	require.Greater(t, w.base, int64(700))
	c, err := h.subscribe("", w.base-1)
	require.NoError(t, err)
	require.True(t, c.first[0].reset)
	c, err = h.subscribe("", w.base)
	require.NoError(t, err)
	require.Len(t, c.first, len(w.kept))
	require.Equal(t, w.base+1, c.first[0].rev)
	h.close()
	_, err = h.subscribe("", 0)
	require.ErrorIs(t, err, errClosing)
}

// A hub that nobody listens to watches nothing.
func TestTheWatchEndsWithItsLastClient(t *testing.T) {
	t.Parallel()
	h, _ := hubOn(t)
	for range 3 {
		a, err := h.subscribe("", 0)
		require.NoError(t, err)
		b, err := h.subscribe("", 0)
		require.NoError(t, err)
		h.unsubscribe(a)
		require.NotNil(t, h.watch)
		h.unsubscribe(b)
		require.Nil(t, h.watch)
	}
	h.watches.Wait()
}

// The id comes with the last event of a revision that the client wants.
func TestFrame(t *testing.T) {
	t.Parallel()
	f := &frame{rev: 7, events: []event{
		{kind: state.OfRun, job: "a", data: []byte(`1`)},
		{kind: state.OfLeader, data: []byte(`2`)},
		{kind: state.OfStatus, job: "b", data: []byte(`3`)},
	}}
	var b bytes.Buffer
	f.write(&b, "a")
	require.Equal(t, "event: run\ndata: 1\n\nevent: leader\nid: 7\ndata: 2\n\n", b.String())
	b.Reset()
	f.write(&b, "")
	require.Equal(t, "event: run\ndata: 1\n\nevent: leader\ndata: 2\n\nevent: status\nid: 7\ndata: 3\n\n", b.String())
	b.Reset()
	(&frame{rev: 9, reset: true}).write(&b, "a")
	require.Equal(t, "event: reset\nid: 9\ndata: {}\n\n", b.String())
}

// What an event leaves out, and what it says of what cannot be read.
func TestNewFrame(t *testing.T) {
	t.Parallel()
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	put := func(key, value string) *clientv3.Event {
		return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: 7}}
	}
	f := newFrame(keys, 7, []*clientv3.Event{
		put(keys.Run("a", "20261130T162930Z"), `{"job":"a","id":"20261130T162930Z","status":"running","output":"long","attempts":[{}],"error":"`+strings.Repeat("x", 1000)+`"}`),
		put(keys.Run("a", "20261130T162931Z"), `broken`),
		put(keys.Status("a"), `broken`),
		put(keys.Lock("a"), `{}`),
		put(keys.Checkpoint("a", "20261130T162930Z"), `{"value":1}`),
		put("/elsewhere", `{}`),
		{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte(keys.Cancel("a", "20261130T162930Z"))}},
	})
	require.Len(t, f.events, 4)
	require.NotContains(t, string(f.events[0].data), "long")
	require.NotContains(t, string(f.events[0].data), "attempts")
	require.Contains(t, string(f.events[0].data), `"fencing_token":7`)
	require.Less(t, len(f.events[0].data), 600)
	require.JSONEq(t, `{"job":"a","id":"20261130T162931Z","deleted":false,"value":null}`, string(f.events[1].data))
	require.JSONEq(t, `{"job":"a","deleted":false,"value":null}`, string(f.events[2].data))
	require.JSONEq(t, `{"job":"a","id":"cancel/a/20261130T162930Z","deleted":true,"value":null}`, string(f.events[3].data))
	require.Positive(t, f.size())
}
