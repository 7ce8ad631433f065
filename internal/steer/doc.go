// Package steer asks for what people and programs want of jobs: a trigger, a retry, a backfill, a cancel, a pause.
// The command line, the HTTP API and the web page ask through it, so that all refuse the same, in the same words.
//
// What it asks for is written to etcd, and whoever leads acts on it ([state.Store.Submit]). Its functions take a
// context that must have a deadline: when it ends before etcd has answered, the fault is of kind UnknownOutcome.
// They may be called at once from anywhere.
package steer
