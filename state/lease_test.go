package state

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// fakeServer is a lessor on virtual time. It lets a lease go the instant its time is over, which is the
// earliest that a real server could.
type fakeServer struct {
	mu      sync.Mutex
	next    clientv3.LeaseID
	expires map[clientv3.LeaseID]time.Time
	ttl     int64         // seconds granted and renewed; 0 is what was asked for
	there   time.Duration // a request's way
	back    time.Duration // an answer's way
	lost    bool          // requests are applied, answers do not come
	down    bool          // requests do not arrive
	renewed int
	swallow int // every so many-th request is not answered
	calls   int
}

func newFakeServer() *fakeServer {
	return &fakeServer{next: 1, expires: make(map[clientv3.LeaseID]time.Time)}
}

func (f *fakeServer) set(change func(*fakeServer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// call carries a request there, applies it, and carries the answer back.
func (f *fakeServer) call(ctx context.Context, apply func() error) error {
	f.mu.Lock()
	f.calls++
	swallowed := f.swallow > 0 && f.calls%f.swallow == 0
	there, back, down, lost := f.there, f.back, f.down || swallowed, f.lost
	f.mu.Unlock()
	if down {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(there)
	f.mu.Lock()
	err := apply()
	f.mu.Unlock()
	if lost {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(back):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeServer) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	resp := &clientv3.LeaseGrantResponse{}
	err := f.call(ctx, func() error {
		if f.ttl != 0 {
			ttl = f.ttl
		}
		resp.ID, resp.TTL = f.next, ttl
		f.next++
		f.expires[resp.ID] = time.Now().Add(time.Duration(ttl) * time.Second)
		return nil
	})
	return resp, err
}

func (f *fakeServer) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	resp := &clientv3.LeaseKeepAliveResponse{ID: id}
	err := f.call(ctx, func() error {
		if !f.livesLocked(id) {
			return rpctypes.ErrLeaseNotFound
		}
		resp.TTL = 5
		if f.ttl != 0 {
			resp.TTL = f.ttl
		}
		f.renewed++
		f.expires[id] = time.Now().Add(time.Duration(resp.TTL) * time.Second)
		return nil
	})
	return resp, err
}

func (f *fakeServer) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return &clientv3.LeaseRevokeResponse{}, f.call(ctx, func() error {
		delete(f.expires, id)
		return nil
	})
}

func (f *fakeServer) livesLocked(id clientv3.LeaseID) bool {
	at, ok := f.expires[id]
	return ok && time.Now().Before(at)
}

func (f *fakeServer) lives(id clientv3.LeaseID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.livesLocked(id)
}

func openLease(t *testing.T, f *fakeServer) *Lease {
	t.Helper()
	l := OpenLease(f, 5*time.Second, LeaseConfig{})
	t.Cleanup(l.Close)
	return l
}

// holding opens a lease and holds it with a margin until the test ends.
func holding(t *testing.T, f *fakeServer, margin time.Duration) (l *Lease, g *Grant, held context.Context) {
	t.Helper()
	l = openLease(t, f)
	g, err := l.Acquire(t.Context(), margin)
	require.NoError(t, err)
	held, release := g.Hold(t.Context(), margin)
	t.Cleanup(release)
	return l, g, held
}

// requireEndsBeforeServer waits for held to end and checks that the server had the lease for margin yet.
func requireEndsBeforeServer(t *testing.T, f *fakeServer, g *Grant, held context.Context, margin time.Duration) {
	t.Helper()
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), ErrLeaseLost)
	f.mu.Lock()
	left := time.Until(f.expires[g.ID])
	f.mu.Unlock()
	require.Greater(t, left, margin-checkEvery-time.Millisecond, "told too late: the server lets go in %s", left)
}

func TestLeaseIsKeptForAsLongAsItIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l, g, held := holding(t, f, time.Second)

		time.Sleep(time.Hour)
		require.NoError(t, held.Err())
		require.True(t, f.lives(g.ID))
		require.InDelta(t, 3600/(5.0/3), f.renewed, 50, "a renewal each third of the TTL")

		again, err := l.Acquire(t.Context(), time.Second)
		require.NoError(t, err)
		require.Same(t, g, again, "one lease for all users")
	})
}

func TestLeaseTrustCountsFromTheRequest(t *testing.T) {
	// Each answer takes 1.5 s to come back. A deadline counted from the receipt would be 1.5 s too late.
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		f.back = 1500 * time.Millisecond
		_, g, held := holding(t, f, time.Second)
		time.Sleep(30 * time.Second)
		require.NoError(t, held.Err(), "late answers are good answers")

		f.set(func(f *fakeServer) { f.down = true })
		requireEndsBeforeServer(t, f, g, held, time.Second)
	})
}

// One request in three is swallowed by a member that does not answer: the others keep the lease.
func TestLeaseSurvivesASilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		_, _, held := holding(t, f, 1500*time.Millisecond)
		f.set(func(f *fakeServer) { f.swallow = 3 })
		time.Sleep(time.Minute)
		require.NoError(t, held.Err())
	})
}

func TestLeaseWithoutAnswersIsNotTrusted(t *testing.T) {
	for name, fault := range map[string]func(*fakeServer){
		"the server is unreachable": func(f *fakeServer) { f.down = true },
		"answers are lost":          func(f *fakeServer) { f.lost = true },
		"answers take too long":     func(f *fakeServer) { f.back = time.Minute },
		"requests take long":        func(f *fakeServer) { f.there, f.back = time.Second, time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer()
				_, g, held := holding(t, f, time.Second)
				f.set(fault)
				requireEndsBeforeServer(t, f, g, held, time.Second)
				require.False(t, g.Held(time.Second))
			})
		})
	}
}

func TestLeaseEachUserHasItsMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l := openLease(t, f)
		g, err := l.Acquire(t.Context(), 0)
		require.NoError(t, err)
		wide, release := g.Hold(t.Context(), 3*time.Second)
		defer release()
		narrow, release := g.Hold(t.Context(), time.Second)
		defer release()
		f.set(func(f *fakeServer) { f.down = true })
		requireEndsBeforeServer(t, f, g, wide, 3*time.Second)
		require.NoError(t, narrow.Err())
		requireEndsBeforeServer(t, f, g, narrow, time.Second)
	})
}

func TestLeaseTTLShortenedByTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		f.ttl = 3 // of the 5 asked for
		_, g, held := holding(t, f, time.Second)
		time.Sleep(10 * time.Second)
		require.NoError(t, held.Err())
		f.set(func(f *fakeServer) { f.ttl = 2 })
		time.Sleep(10 * time.Second)
		require.NoError(t, held.Err())
		f.set(func(f *fakeServer) { f.down = true })
		requireEndsBeforeServer(t, f, g, held, time.Second)
	})
}

func TestLeaseOlderAnswerDoesNotCount(t *testing.T) {
	// Two renewals are on their way at once; the answer to the first comes after that to the second.
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l := openLease(t, f)
		g, err := l.Acquire(t.Context(), 0)
		require.NoError(t, err)
		f.set(func(f *fakeServer) { f.back = time.Second; f.ttl = 30 })
		var first sync.WaitGroup
		first.Go(func() { _ = l.renewOnce(t.Context(), g) })
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		f.set(func(f *fakeServer) { f.back = 0; f.ttl = 5 })
		require.NoError(t, l.renewOnce(t.Context(), g))
		newest := g.sent
		first.Wait()
		require.Equal(t, newest, g.sent)
		require.Equal(t, 5*time.Second, g.ttl, "the longer TTL of the older answer was taken back by the newer one")
	})
}

func TestLeaseComesBackAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l, g, held := holding(t, f, time.Second)
		f.set(func(f *fakeServer) { f.down = true })
		<-held.Done()
		f.set(func(f *fakeServer) { // a new etcd leader gives every lease its full TTL again
			f.down = false
			f.expires[g.ID] = time.Now().Add(5 * time.Second)
		})
		require.True(t, g.Await(t.Context(), time.Second))
		again, err := l.Acquire(t.Context(), time.Second)
		require.NoError(t, err)
		require.Same(t, g, again, "the same lease goes on")
		require.Error(t, held.Err(), "but who was told to stop stays stopped")
	})
}

func TestLeaseIsGrantedAnewAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l, g, held := holding(t, f, time.Second)
		f.set(func(f *fakeServer) { delete(f.expires, g.ID) }) // revoked from outside
		l.Nudge()
		synctest.Wait()
		require.ErrorIs(t, context.Cause(held), ErrLeaseLost, "at once, not with the next renewal")
		select {
		case <-g.Gone():
		default:
			t.Fatal("not gone")
		}
		require.False(t, g.Await(t.Context(), 0))
		again, err := l.Acquire(t.Context(), time.Second)
		require.NoError(t, err)
		require.NotEqual(t, g.ID, again.ID)
	})
}

func TestLeaseDropIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l := openLease(t, f)
		g, err := l.Acquire(t.Context(), time.Second)
		require.NoError(t, err)
		g.Drop()
		synctest.Wait()
		require.False(t, f.lives(g.ID))
		require.False(t, g.Held(0))
	})
}

func TestLeaseNothingIsAskedBeforeItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		openLease(t, f)
		time.Sleep(time.Minute)
		require.Empty(t, f.expires)
	})
}

func TestLeaseCloseRevokesAndEndsItsUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l := OpenLease(f, 5*time.Second, LeaseConfig{})
		g, err := l.Acquire(t.Context(), 0)
		require.NoError(t, err)
		held, release := g.Hold(t.Context(), time.Second)
		defer release()
		l.Close()
		require.ErrorIs(t, context.Cause(held), ErrClosed)
		require.False(t, f.lives(g.ID))
		_, err = l.Acquire(t.Context(), 0)
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestLeaseCloseIsBoundedWithoutEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		l := OpenLease(f, 5*time.Second, LeaseConfig{})
		_, err := l.Acquire(t.Context(), 0)
		require.NoError(t, err)
		f.set(func(f *fakeServer) { f.down = true })
		start := time.Now()
		l.Close()
		require.LessOrEqual(t, time.Since(start), revokeTimeout+time.Second)
	})
}

func TestLeaseAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		f.down = true
		l := openLease(t, f)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		_, err := l.Acquire(ctx, 0)
		require.ErrorIs(t, err, why)
	})
}

func TestElapsedTakesTheClockThatSaysMore(t *testing.T) {
	now := time.Now()
	require.Equal(t, 3*time.Second, elapsed(now, now.Add(3*time.Second)))
	// After a suspend the monotonic clock says less than the wall clock: as if `from` had been measured
	// an hour ago by the wall clock alone.
	slept := now.Round(0).Add(-time.Hour)
	require.Equal(t, time.Hour, elapsed(slept, now))
	// The wall clock was set back: the monotonic clock still counts.
	require.GreaterOrEqual(t, elapsed(now, now.Add(time.Second)), time.Second)
}
