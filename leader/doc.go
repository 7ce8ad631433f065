// Package leader elects one instance at a time and tells it how long it is surely still the one.
//
// # States
//
// An [Elector] is in one of four states, each a function of its own:
//
//	campaign  it has a candidate key under its lease and waits for those created before it to go
//	reign     it leads: the caller's function runs with a context that is the term
//	doubt     the lease is not surely held any more; the caller's function was told to stop
//	resign    it gives its key up, so that the next candidate leads at once
//
// campaign ends when concurrency.Election says that it is our turn and a transaction has confirmed that
// our key still exists with the create revision that it had: Campaign also returns when our own lease
// died while we waited. If it fails, the lease is dropped and the next campaign begins with a new one,
// so that no candidate key is left behind for others, or for ourselves, to wait for.
//
// reign ends when the lease is not surely held (doubt), when our key is deleted by anybody, when the
// caller's function returns or its heart stops beating, when [Elector.Resign] is called, and when the
// context ends. In each case the term's context ends first, with a cause.
//
// doubt ends as soon as the same lease answers again. A new etcd leader gives every lease its full time
// again, so after an outage our own key would block every candidate, ourselves among them, for that
// long. If the lease still lives and the key still has its create revision, the same term goes on
// without an election. If the lease is gone, we campaign anew.
//
// # What makes it safe
//
// A term is identified by the create revision of its election key. Whoever writes as the leader puts
// "my key still has that create revision" into the write's compare ([state.Term]). So the trust window
// only keeps the time short in which a former leader works in vain; it decides nothing. The trust window
// counts from the instant before a renewal was sent (see [state.Lease]); the term's context ends a fifth
// of the TTL before the server could let the lease go.
//
// # Heart
//
// A healthy keepalive over a dead loop is the worst of failures: nobody leads and nobody else may. So
// the leader's loop must call [Term.Beat] at least once in a TTL, and only while its writes are
// answered. When it does not, the term ends with [ErrStalled] and the key is given up; if even that
// cannot be written, the lease is not renewed any more.
package leader
