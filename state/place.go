package state

import "strings"

// Kind is what a key is of.
type Kind string

// The kinds of keys that tell of something that people look at. A lock or a checkpoint tells nothing that the record
// of its run does not.
const (
	OfLeader   Kind = "leader"
	OfInstance Kind = "instance"
	OfSpec     Kind = "spec"
	OfStatus   Kind = "status"
	OfRun      Kind = "run"
	OfProgress Kind = "progress"
	OfControl  Kind = "control"
	OfRequest  Kind = "request"
)

// Place is what a key is of: of which job and run, or whatever else has an id. Empty is what it does not have.
type Place struct {
	Kind Kind
	Job  string
	ID   string
}

// PlaceOf parses a key; ok is false for one that is of none of the kinds above.
func (k Keys) PlaceOf(key string) (p Place, ok bool) {
	rest, ours := strings.CutPrefix(key, k.root)
	if !ours {
		return Place{}, false
	}
	top, rest, _ := strings.Cut(rest, "/")
	switch top {
	case "leader":
		return Place{Kind: OfLeader, ID: rest}, true
	case "instances":
		return Place{Kind: OfInstance, ID: rest}, true
	case "status":
		return Place{Kind: OfStatus, Job: rest}, true
	case "controls":
		return Place{Kind: OfControl, Job: rest}, true
	case "requests":
		return Place{Kind: OfRequest, ID: rest}, true
	case "jobs":
		job, part, _ := strings.Cut(rest, "/")
		part, id, _ := strings.Cut(part, "/")
		switch {
		case part == "spec" && id == "":
			return Place{Kind: OfSpec, Job: job}, true
		case part == "runs" && id != "":
			return Place{Kind: OfRun, Job: job, ID: id}, true
		case part == "progress" && id != "":
			return Place{Kind: OfProgress, Job: job, ID: id}, true
		}
	}
	return Place{}, false
}
