// Package app wires the parts of the binary together: a client of etcd, or an etcd of our own, the
// scheduler, the jobs file, metrics and HTTP. Commands call it; it parses no flags, handles no signals
// and never ends the process.
//
// # The life of Serve
//
//	check    everything that needs no etcd: flags, jobs file; a fault ends it here, as [ErrBadInput]
//	listen   HTTP answers from here on, so that /readyz can say what is being waited for
//	reach    etcd: our own within a time limit, somebody else's for as long as it takes
//	run      the scheduler, until ctx ends
//	drain    the scheduler lets running jobs finish; HTTP and etcd are still there
//	close    HTTP, then the client, then our etcd, each within a time limit
//
// An etcd of our own that stops by itself (a full disk) ends Serve with an error, after the drain. An
// etcd of somebody else's that goes away ends nothing: the scheduler waits for it.
//
// # An etcd of our own
//
// It is a cluster of one member without a peer port, for loopback clients: etcdctl and every subcommand
// find it at the default endpoint. Its HTTP gateway is off, since a page in the user's browser could
// write through it. It compacts its history every five minutes. Its data directory is locked with a file
// of ours first, since etcd would wait for ever for a directory in use; a second file marks a new store
// until it has been ready once, since one that was cut off before that never would be.
package app
