// Package workload is what the jobs of the chaos tests are and do. They write down what they do themselves, in files
// that etcdcron knows nothing of: one line of JSON for each event, appended in one write.
package workload
