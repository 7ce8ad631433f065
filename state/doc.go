// Package state is what etcdcron writes to etcd and how: keys, records, transactions, leases, watches.
//
// It is the ground floor: it knows nothing of schedules, elections or handlers. Everything that
// etcdcron keeps lives under one root, /<prefix>/<namespace>/, as JSON that a person can read with
// etcdctl. [Keys] is the only place where a key is built or parsed.
//
// # Who may write what
//
// A job has a spec (what it is), a status (where it stands), and one record per run. The leader writes
// specs, claims runs and records those that will not be run. The owner of a run, the instance that
// claimed it, writes its end. Two rules make that safe without any memory of who leads:
//
//   - Whatever only a leader may write carries the compare "my election key still has the create
//     revision of my term". A leader that was paused for an hour cannot write a word.
//   - The mod revision of a run's record is its ownership. Each claim, and each recovery, puts the
//     record anew; an owner whose run was taken over finds another revision there and is refused.
//
// Each step of a run is one transaction ([Store.Claim], [Store.Record], [Store.Finish],
// [Store.TakeOver], [Store.Abandon]), so there is no state in between: a run that is claimed has its
// lock, its record and its place in the job's status, or none of them.
//
// # Incidents
//
// A status also says what of its job somebody is to look at ([Incident]), by the rules in its spec ([AlertSpec]), and
// what of that was not told yet. The same transactions open and close incidents, so one exists once, whoever leads.
// Two writes are no step of a run: its owner says that it goes on for too long ([Store.Overrun]), and the leader
// notes what it has told ([Store.MarkTold]).
//
// # Unknown is not failed
//
// A transaction whose answer did not come may have been applied, or may yet be. Its outcome is settled
// by sending the same transaction again until an answer comes: every mutation here is refuted by its own
// success, so it applies at most once, and a refusal reads back what stands there in the same
// transaction. If that is byte for byte what was to be written, the earlier try had landed.
//
// A refusal by a compare that may hold again (no lock, no control) leaves an earlier try open that is
// still on its way. The run's key settles that too: whatever the leader decides next about the scheduled
// time writes the same key, so one of the two is refused; and a run that turns out to be claimed, with
// nobody executing it, is recovered like any other that has lost its instance.
//
// # Leases
//
// [Lease] knows, conservatively, how long it is still surely held: it counts from the instant before a
// renewal was sent, not from the answer, and by the monotonic and the wall clock both.
package state
