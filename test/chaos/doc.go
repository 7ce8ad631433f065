// Package chaos tests etcdcron from outside: real processes against three members of etcd, with faults of every kind,
// and a history that the jobs write themselves. What happened is decided by the package checker, which believes nobody.
//
//	go test ./test/chaos                                       a fixed set of seeds, as in CI
//	go test ./test/chaos -run TestSoak -chaos.duration=30m     a soak; make soak
//	go test ./test/chaos -run TestSoak -chaos.duration=1m -chaos.seed=7
//
// The faults follow from the seed alone (see the plan); what they meet does not.
package chaos
