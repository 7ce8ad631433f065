// Package failover tests etcdcron from outside: real processes on a real etcd, killed, frozen and cut
// off with real signals. The jobs write what they did to files that etcdcron knows nothing of.
package failover
