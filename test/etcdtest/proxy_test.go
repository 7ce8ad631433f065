package etcdtest

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// behindProxy is an etcd with a client that reaches it through a proxy, and one that does directly.
func behindProxy(t *testing.T) (proxied, direct *clientv3.Client, proxy *Proxy) {
	t.Helper()
	c := Start(t)
	proxied, proxies := c.Proxied(t)
	put(t, proxied, "before", "the fault")
	return proxied, c.Client(t), proxies[0]
}

// startPut sends a put and says later how it ended.
func startPut(t *testing.T, client *clientv3.Client, key, value string) <-chan error {
	t.Helper()
	ctx := timeout(t, long)
	done := make(chan error, 1)
	go func() {
		_, err := client.Put(ctx, key, value)
		done <- err
	}()
	return done
}

func requirePending(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.Fail(t, "ended though nothing should get through", "%v", err)
	case <-time.After(short):
	}
}

func TestProxyCut(t *testing.T) {
	t.Parallel()
	proxied, direct, proxy := behindProxy(t)
	proxy.Cut()
	_, err := proxied.Put(timeout(t, short), "k", "v")
	require.Error(t, err)
	require.Empty(t, get(t, direct, "k"))
	proxy.Heal()
	putUntilDone(t, proxied, "k", "v")
	require.Equal(t, "v", get(t, direct, "k"))
}

func TestProxyPauseHoldsAndHealDelivers(t *testing.T) {
	t.Parallel()
	proxied, direct, proxy := behindProxy(t)
	proxy.Pause()
	done := startPut(t, proxied, "k", "v")
	requirePending(t, done)
	require.Empty(t, get(t, direct, "k"))
	proxy.Heal()
	require.NoError(t, <-done)
	require.Equal(t, "v", get(t, direct, "k"))
}

func TestProxyPauseToServer(t *testing.T) {
	t.Parallel()
	proxied, direct, proxy := behindProxy(t)
	watch := proxied.Watch(t.Context(), "seen", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)

	proxy.Pause(ToServer)
	put(t, direct, "seen", "yes")
	require.Equal(t, "yes", string((<-watch).Events[0].Kv.Value), "the other way is open")
	done := startPut(t, proxied, "k", "v")
	requirePending(t, done)
	require.Empty(t, get(t, direct, "k"))
	proxy.Heal()
	require.NoError(t, <-done)
}

func TestProxyPauseToClient(t *testing.T) {
	t.Parallel()
	proxied, direct, proxy := behindProxy(t)
	proxy.Pause(ToClient)
	done := startPut(t, proxied, "k", "v")
	require.Eventually(t, func() bool { return get(t, direct, "k") == "v" }, long, poll, "the other way is open")
	requirePending(t, done)
	proxy.Heal()
	require.NoError(t, <-done)
}

func TestProxyResumeOfOneDirection(t *testing.T) {
	t.Parallel()
	proxied, direct, proxy := behindProxy(t)
	proxy.Pause(ToClient)
	first := startPut(t, proxied, "k", "v")
	require.Eventually(t, func() bool { return get(t, direct, "k") == "v" }, long, poll)
	proxy.Pause(ToServer)
	second := startPut(t, proxied, "k", "w")
	requirePending(t, first)
	proxy.Resume(ToClient)
	require.NoError(t, <-first, "the answer is delivered")
	requirePending(t, second)
	require.Equal(t, "v", get(t, direct, "k"), "and no further request is")
	proxy.Heal()
	require.NoError(t, <-second)
}

func TestProxyDelay(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	proxied, _, proxy := behindProxy(t)
	proxy.Delay(delay)
	began := time.Now()
	put(t, proxied, "k", "v")
	require.GreaterOrEqual(t, time.Since(began), 2*delay)

	proxy.Delay(time.Hour)
	done := startPut(t, proxied, "k", "w")
	requirePending(t, done)
	proxy.Heal()
	require.NoError(t, <-done, "Heal does not wait for a delay to pass")
}

func TestProxyOutlivesARestartOfEtcd(t *testing.T) {
	t.Parallel()
	c := Start(t)
	client, proxies := c.Proxied(t)
	put(t, client, "k", "v")
	proxies[0].Pause(ToServer)
	// A new connection into the pause: etcd must not see it, or it could not stop.
	silent, err := net.Dial("tcp", proxies[0].Endpoint())
	require.NoError(t, err)
	defer silent.Close()
	_, err = silent.Write([]byte("PRI"))
	require.NoError(t, err)

	require.NoError(t, c.Restart())
	proxies[0].Heal()
	require.Equal(t, "v", get(t, client, "k"))
}

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Endpoint())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(long)))
	return conn.(*net.TCPConn)
}

func say(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	_, err := conn.Write([]byte(word))
	require.NoError(t, err)
	heard := make([]byte, len(word))
	_, err = io.ReadFull(conn, heard)
	require.NoError(t, err)
	require.Equal(t, word, string(heard))
}

func requireClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestProxyPassesEverythingInOrder(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	conn := dial(t, p)
	sent := make([]byte, 8<<20) // more than the queues hold, sent into a pause
	for i := range sent {
		sent[i] = byte(i >> 3)
	}
	p.Pause()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	})
	p.Heal()
	heard, err := io.ReadAll(conn)
	require.NoError(t, err, "the end of the stream comes through")
	require.True(t, bytes.Equal(sent, heard))
}

func TestProxyCutClosesOldAndNewConnections(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, "http://"+echo(t))
	old := dial(t, p)
	say(t, old, "hello")
	p.Cut()
	requireClosed(t, old)
	young, err := net.Dial("tcp", p.Endpoint())
	if err == nil { // or the reset came before Dial had returned
		t.Cleanup(func() { _ = young.Close() })
		require.NoError(t, young.SetDeadline(time.Now().Add(long)))
		requireClosed(t, young)
	}
	p.Heal()
	say(t, dial(t, p), "hello again")
}

func TestProxyPauseHidesTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	conn := dial(t, p)
	say(t, conn, "hello")
	p.Pause(ToServer)
	require.NoError(t, conn.CloseWrite())
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(short)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the server has not heard of it")

	p.Heal()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(long)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestProxyWithoutAServerClosesTheConnection(t *testing.T) {
	t.Parallel()
	port, err := newPort()
	require.NoError(t, err)
	defer port.release()
	conn := dial(t, NewProxy(t, port.address()))
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	requireClosed(t, conn)
}

func TestProxyCloseWithConnectionsInEveryState(t *testing.T) {
	t.Parallel()
	p, err := RunProxy(echo(t))
	require.NoError(t, err)
	say(t, dial(t, p), "hello")
	p.Pause()
	_, err = dial(t, p).Write([]byte("held"))
	require.NoError(t, err)
	dial(t, p)
	p.Close() // goleak sees what it leaves
	p.Close()
	_, err = net.Dial("tcp", p.Endpoint())
	require.Error(t, err)
}

func TestProxyTargetMustBeAnAddress(t *testing.T) {
	t.Parallel()
	_, err := RunProxy("nowhere")
	require.ErrorContains(t, err, "host:port")
}
