// Package checker decides whether what etcdcron did was right. It believes nobody: it knows what the jobs are, what
// the jobs themselves have written down of their work, what a target that refuses old fencing tokens was asked to
// write, which faults there were, and what stands in etcd at the end. It has no etcd and no clock.
//
// In the manner of Jepsen's checker for Chronos, each scheduled time is owed a record of its own, and each record that
// says that work was done is owed an execution in the history.
//
//	I1  an attempt is claimed once; attempts of a run never overlap, and their fencing tokens rise; nobody claims in
//	    a term that was over
//	I2  runs of a job do not overlap, unless it allows it; a fenced target refuses what is late, and only that
//	I3  every scheduled time has exactly one record, which says what the history says
//	I4  nothing is running, waiting, asked for or locked at the end
//	I5  an attempt goes on from the last checkpoint that was acknowledged, never from an older one
//	I6  the counters are what the records say
//
// Of an attempt that was killed nobody knows when it ended. It is taken to have ended with the last thing that it wrote
// down, so that what the checker calls an overlap has been one.
//
// What excuses an overlap: the instance of the attempt that should have ended was frozen (by a signal, or by a machine
// that gave it no time, which the instances write down themselves); somebody deleted the lock by hand; somebody
// revoked its lease while something else kept the news of it from the instance; or the attempt was told to stop, and
// has gone on for longer than its grace. Nothing excuses a fenced target that takes an old token, a lost time, or an
// old checkpoint.
package checker
