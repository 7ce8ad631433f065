// Package doctor looks for what is wrong: with etcd, with the instances, with what stands in etcd, and with the jobs.
// Each finding says what it means and what to do about it.
//
// It reads; the one thing that it writes is a key under the prefix, which it deletes again, to see how long a write
// takes and whether it may. Every read is bounded, and every call has a deadline. What it may not look at, or cannot
// reach, is a finding too and hides no other.
package doctor
