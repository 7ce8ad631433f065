// Package cronrunner decides what is due, and runs it: at most once for each scheduled time, in a
// cluster of instances that share an etcd.
//
//	s, err := cronrunner.New(client, cronrunner.Config{})
//	err = s.Register(cronrunner.Job{Name: "daily_billing", Schedule: "0 0 9 * * *", Handler: bill})
//	err = s.Run(ctx) // campaigns, schedules while leading, drains when ctx ends
//
// # The way of a run
//
// Data goes one way: schedule, decide, claim, execute, record, observe.
//
//	schedule   [Schedule] yields scheduled times; a timetable knows which jobs are due
//	decide     decide says what becomes of every time since the last one decided; pure, no clock
//	claim      one transaction makes the run ours, locks the job and moves the cursor
//	execute    an attempt calls the [Handler] under a lease-bound lock, a time limit and a watchdog
//	record     one transaction writes the end and unlocks the job
//	observe    an [Observer] is told
//
// # Terms and attempts
//
// The leader decides and claims; each term has its own loop, its own timers and its own channels, so
// nothing of an earlier term reaches a later one. Attempts belong to the [Scheduler], not to the term:
// when leadership is lost or handed over they go on under their own locks.
//
// # What a handler can rely on
//
// Its context ends when the time limit is reached ([ErrTimeout]), when the lock is not surely held any
// more ([ErrLockLost]), and when the instance shuts down and the drain limit is reached ([ErrDraining]);
// context.Cause tells which. After that it has Job.Grace to return, before anyone else can get the lock.
// A process that is frozen for longer than the lock's TTL cannot notice in time: only a target that
// refuses old fencing tokens ([Run.FencingToken]) is safe from it.
package cronrunner
