// Package etcdtest gives a test a real etcd: the server itself, embedded in the test binary, with its
// data in a temporary folder and on ports of the loopback interface that nobody else can take.
//
//	func TestMyJob(t *testing.T) {
//		cluster := etcdtest.Start(t)
//		client := cluster.Client(t)
//		// give the client to etcdcron, or to whatever is to be tested
//	}
//
// Everything is closed and removed when the test ends. Where there is no test, as in an Example or in
// TestMain, [Run], [NewClient] and [RunProxy] do the same and leave the closing to the caller.
//
// # What to expect
//
// A cluster of one starts in a fraction of a second, so every test can have its own; tests that run in
// parallel do not disturb each other. [WithMembers] gives a cluster of three. While it runs, a member
// reserves about 130 MB of disk for its log. It does not wait for the disk to write (see [WithFsync])
// and it logs nothing (see [WithLogger]).
//
// The shortest lease that etcd grants depends on its election timeout: with the default it is 1 s
// (see [WithElectionTimeout]). A lease lives longer than its TTL says when etcd is restarted or
// changes its leader: a new leader gives every lease its whole TTL again and the election timeout on top.
//
// etcd registers its metrics in Prometheus' default registry, once for all members in the process.
//
// # Losing etcd
//
// [Member.Stop], [Member.Kill] and [Member.Restart] are for one member, [Cluster.Stop] and
// [Cluster.Restart] for all. Data and ports stay the same, so that a client finds its way back by
// itself. [Cluster.MoveLeader] makes another member lead.
//
//	err := cluster.Stop()
//	// nobody is leader now: see that nothing runs
//	err = cluster.Restart()
//
// # Losing the network
//
// A [Proxy] stands between a client and a server and cuts, silences or slows what goes through, both
// ways or one way. [Cluster.Proxied] puts one before each member and gives a client that knows only
// the proxies; a process under test gets [Proxy.Endpoint] instead of [Member.Endpoint].
//
//	client, proxies := cluster.Proxied(t)
//	proxies[0].Pause() // a black hole: the leader's lease runs out, and it must notice by itself
//	proxies[0].Heal()
//
// A client connects when it is first used. To see a request reach etcd while [ToClient] is paused, use
// the client once before: a connection needs both ways to come about.
package etcdtest
