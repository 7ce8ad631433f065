package state

import (
	"slices"
	"time"
)

// AlertKind is what an alert is about.
type AlertKind string

// The kinds of an incident, and of what is told about it.
const (
	AlertFailing   AlertKind = "failing"   // as many runs in a row have failed as the job's alert says
	AlertMissed    AlertKind = "missed"    // scheduled times were not run and will not be
	AlertOverrun   AlertKind = "overrun"   // a run goes on for longer than the job's alert allows
	AlertRecovered AlertKind = "recovered" // no incident, but the end of one: a job that was failing has succeeded
)

// AlertSpec is what of a job is an incident, and whether somebody is told of it. Nil is none at all.
type AlertSpec struct {
	AfterFailures int      `json:"after_failures,omitempty"` // 0 for never
	Missed        bool     `json:"missed,omitempty"`
	Overrun       Duration `json:"overrun,omitempty"` // 0 for never
	Recovered     bool     `json:"recovered,omitempty"`
	Notify        string   `json:"notify,omitempty"` // whom, for people; when empty nobody is told, and log and metrics are all
}

// wants reports whether there are incidents of a kind, or, of AlertRecovered, whether their end is told.
func (a *AlertSpec) wants(kind AlertKind) bool {
	if a == nil {
		return false
	}
	switch kind {
	case AlertFailing:
		return a.AfterFailures > 0
	case AlertMissed:
		return a.Missed
	case AlertOverrun:
		return a.Overrun > 0
	case AlertRecovered:
		return a.Recovered && a.Notify != ""
	}
	return false
}

// Incident is something of a job that somebody is to look at. It is opened and closed by the transactions that
// account for runs, so that it exists once, whoever leads. One that is open lasts; one that was closed is kept only
// until what is owed of it was told.
//
// An incident that is to be opened again before the first word of it was told is the same incident: a job that
// flaps while nobody can be told is one.
type Incident struct {
	Kind AlertKind `json:"kind"`
	// Run is the run that it began with: the last one that was tolerated, the first record of missed times, the run
	// that goes on. Kind and run name the incident in its job.
	Run string `json:"run"`
	// Since is when that run ended, or of AlertMissed the first time that was missed, of AlertOverrun when the run
	// began.
	Since time.Time `json:"since"`
	// Count is how many runs have failed in a row, or how many scheduled times were missed; 0 for AlertOverrun.
	Count      int64     `json:"count,omitempty"`
	Error      string    `json:"error,omitempty"` // the last one, cut
	Untold     bool      `json:"untold,omitempty"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
}

// Open reports whether the incident lasts.
func (in *Incident) Open() bool { return in.ResolvedAt.IsZero() }

// same reports whether two are one incident, at two times.
func (in *Incident) same(other *Incident) bool { return in.Kind == other.Kind && in.Run == other.Run }

// maxOverruns bounds the incidents of runs that go on for too long, of one job: the status of every job is read at
// once. (Of failures there are two at most, one of which is over; of missed times one.)
const maxOverruns = 5

// Alerts reports whether an incident of a kind is open.
func (s *JobStatus) Alerts(kind AlertKind) bool {
	return slices.ContainsFunc(s.Alerting, func(in Incident) bool { return in.Kind == kind && in.Open() })
}

// OpenedBy is the incident that the end of a run, or its record as missed, has opened; false if none.
func (s *JobStatus) OpenedBy(run string) (Incident, bool) {
	i := slices.IndexFunc(s.Alerting, func(in Incident) bool { return in.Run == run && in.Kind != AlertOverrun && in.Open() })
	if i < 0 {
		return Incident{}, false
	}
	return s.Alerting[i], true
}

// alerted opens and closes incidents for a run that is over, which s accounts for already.
func (s JobStatus) alerted(rules *AlertSpec, r *Run) JobStatus {
	if rules == nil && len(s.Alerting) == 0 {
		return s
	}
	s = s.resolved(rules, r)
	switch {
	case r.Status == Failed && rules.wants(AlertFailing) && s.ConsecutiveFailures >= int64(rules.AfterFailures):
		return s.incident(rules, Incident{
			Kind: AlertFailing, Run: r.ID, Since: r.FinishedAt, Count: s.ConsecutiveFailures, Error: CutHead(r.Error, maxLastError),
		})
	case r.Status == Missed && rules.wants(AlertMissed):
		return s.incident(rules, Incident{Kind: AlertMissed, Run: r.ID, Since: r.ScheduledAt, Count: r.Times()})
	}
	return s
}

// overrunning opens the incident that a run goes on for too long, if it does go on and that is not said yet.
func (s JobStatus) overrunning(rules *AlertSpec, run string, since time.Time) JobStatus {
	overrun := Incident{Kind: AlertOverrun, Run: run, Since: since}
	if !rules.wants(AlertOverrun) || !slices.Contains(s.Live, run) || slices.ContainsFunc(s.Alerting, func(in Incident) bool { return in.same(&overrun) }) {
		return s
	}
	return s.incident(rules, overrun)
}

// incident opens one, or goes on with one of its kind.
func (s JobStatus) incident(rules *AlertSpec, in Incident) JobStatus {
	all := slices.Clone(s.Alerting)
	for i := range all {
		was := &all[i]
		if was.Kind != in.Kind || in.Kind == AlertOverrun || !was.Open() && !was.Untold {
			continue
		}
		if in.Kind == AlertMissed {
			in.Count += was.Count
		}
		was.Count, was.Error, was.ResolvedAt = in.Count, in.Error, time.Time{}
		s.Alerting = all
		return s
	}
	in.Untold = rules.Notify != ""
	s.Alerting = boundOverruns(append(all, in))
	return s
}

// boundOverruns leaves out what is too much: the oldest that is over, otherwise the newest.
func boundOverruns(all []Incident) []Incident {
	n, over, newest := 0, -1, -1
	for i := range all {
		if all[i].Kind != AlertOverrun {
			continue
		}
		n, newest = n+1, i
		if over < 0 && !all[i].Open() {
			over = i
		}
	}
	switch {
	case n <= maxOverruns:
		return all
	case over >= 0:
		return slices.Delete(all, over, over+1)
	default:
		return slices.Delete(all, newest, newest+1)
	}
}

// resolved closes the incidents that the end of a run ends. A job whose runs succeed neither fails nor misses its
// times any more.
func (s JobStatus) resolved(rules *AlertSpec, r *Run) JobStatus {
	var left []Incident
	for _, in := range s.Alerting {
		if in.Open() && r.Status.Final() && (in.Kind == AlertOverrun && in.Run == r.ID || in.Kind != AlertOverrun && r.Status == Succeeded) {
			in.ResolvedAt = r.FinishedAt
		}
		// What an owner by an older definition does not know of is left to the leader.
		if in.Open() || in.Untold || in.Kind == AlertFailing && (rules == nil || rules.wants(AlertRecovered)) {
			left = append(left, in)
		}
	}
	s.Alerting = left
	return s
}

// Alertable is s without what rules, which may have been edited, do not ask for: incidents of kinds that are none
// any more, and words that nobody is to be told.
func (s JobStatus) Alertable(rules *AlertSpec) JobStatus {
	var left []Incident
	for _, in := range s.Alerting {
		in.Untold = in.Untold && rules != nil && rules.Notify != ""
		if rules.wants(in.Kind) && (in.Open() || in.Untold || in.Kind == AlertFailing && rules.wants(AlertRecovered)) {
			left = append(left, in)
		}
	}
	s.Alerting = left
	return s
}

// Owed is what is to be told next of a job that alerts by rules: that an incident began, or AlertRecovered, that it
// is over. Of each incident both are told, in order, also when it is over before the first word. A kind of "" is a
// status with incidents that rules do not ask for: they are to be taken away, by MarkTold.
func (s *JobStatus) Owed(rules *AlertSpec) (in Incident, kind AlertKind, ok bool) {
	if !slices.Equal(s.Alerting, s.Alertable(rules).Alerting) {
		return Incident{}, "", true
	}
	for _, in := range s.Alerting {
		switch {
		case in.Untold:
			return in, in.Kind, true
		case !in.Open():
			return in, AlertRecovered, true
		}
	}
	return Incident{}, "", false
}

// told is s after kind was told of an incident.
func (s JobStatus) told(rules *AlertSpec, in *Incident, kind AlertKind) JobStatus {
	s.Alerting = slices.Clone(s.Alerting)
	for i := range s.Alerting {
		switch is := &s.Alerting[i]; {
		case kind == "" || !is.same(in):
		case kind != AlertRecovered:
			is.Untold = false
		case !is.Open() && !is.Untold:
			s.Alerting = slices.Delete(s.Alerting, i, i+1)
			return s.Alertable(rules)
		}
	}
	return s.Alertable(rules)
}
