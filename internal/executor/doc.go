// Package executor turns what a jobs file names into handlers that [cronrunner] can call: commands, which are
// a program with arguments or a line for the shell, and webhooks, which are an HTTP request. A webhook can also be what
// a job's alert is told to ([Executor.Notify]).
//
// # The life of a command
//
// A command is the leader of a process group of its own, with /dev/null as its standard input.
//
//	start   the program is looked up and started; what cannot be started fails at once, with its reason
//	run     standard output and error are read until they end; see "Output"
//	exit    the main process exits; it is not reaped yet, so its id cannot become a stranger's
//	settle  up to 500 ms for the rest of its output, as a filter at the end of a pipe may need
//	kill    what is left of its group gets SIGKILL
//	reap    the exit status is taken
//	cut     output that is still held open (by a process that left the group) is cut 100 ms later
//
// When the context ends before the main process has exited, the group gets SIGTERM (and SIGCONT, for
// those that are stopped), all of its members have the grace period to be gone, and what is left gets
// SIGKILL. Such a run was stopped, whatever its exit code: the error wraps the context's cause. From the
// end of the context to the return of the handler it takes at most the grace period and 200 ms, unless
// the kernel cannot end the process at once (a hung network file system): then the handler does not
// return, for the work may still be going on.
//
// A command that wants to leave something behind must start it in a session of its own (setsid) and
// point its output elsewhere. Such a process is not killed, and its run ends without it.
//
// # When the scheduler is killed
//
// kill -9 of the scheduler leaves it no time to stop anything. On Linux the kernel then kills each
// command's main process (not for a program that is set-user-id). Its children, and everything on
// other systems, live on: a job for which that is dangerous checks its fencing token where it writes.
//
// # The socket of a command
//
// While a command runs, a unix socket speaks HTTP with it: POST /progress, POST /checkpoint, GET /checkpoint. A
// checkpoint is answered once it is durable. The socket lives until the command is gone, its grace period
// included, and not until the context of the handler ends: the last checkpoint is written after that. A run
// that is not ours any more is told so (409), for every write is fenced by state.
//
// A command is not started before its last checkpoint could be read. Without a socket it is started: whether it
// needs one only it knows.
//
// # Output
//
// The last 16 KiB of both streams together are kept for the record, in the order of their lines as far
// as two pipes can tell it. Every line also goes to the log as it comes, cut at 8 KiB, with a burst of
// 1000 lines and 100 lines a second after it; the number of lines left out is logged too. A log that
// does not keep up delays the command by at most 100 ms at a time and then loses lines, not the record.
// All that is at most 2 MiB of memory for each running command, whatever it prints.
//
// What is not text becomes U+FFFD: invalid UTF-8, and control characters, which could forge log lines
// or drive the reader's terminal.
//
// # Outcome
//
// Exit codes are kept as they are. A command that a signal killed has failed, with the signal's name,
// and 128 plus the signal's number as its exit code, as in a shell. In a pipe of a shell command only the
// last program's code counts: that is the shell's rule.
//
// # Webhooks
//
// An attempt is one request, and at most the redirects that keep it what it is and where it is. A request is never
// sent again behind the scheduler's back. The context's end cancels it: the target sees its connection go. What
// the answer means:
//
//	2xx                       success, once the answer is read to its end, or 16 MiB of it
//	408, 425, 429, 5xx        failed; tried again, after Retry-After if there is one
//	no answer, a broken one   failed; tried again
//	anything else             failed for good: other statuses, redirects that are not followed
//
// An answer in application/x-ndjson is read line by line: progress, checkpoint, output, error. The next line is
// read only when a checkpoint is durable.
//
// No error, log line or record has a header's value from a file or a variable in it, or the query of a URL.
package executor
