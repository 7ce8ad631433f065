// Package deploy checks what deploy/ holds with Prometheus' own packages: that its rules and its dashboard can be read,
// do what they say, and speak of metrics that there are. It is a module of its own, for Prometheus.
package deploy
