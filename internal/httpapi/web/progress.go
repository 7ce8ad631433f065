package web

import (
	"strconv"
	"sync"
	"time"

	"github.com/etcdcron/etcdcron/state"
)

// progress is how far a run is, as a page shows it.
type progress struct {
	Done, Total string // for the bar; Total is "" when it is not known
	Text        string // "4,200 of 10,000"
	Share       string // "42%"
	Rate        string // "310 a second"; "" when it cannot be told
	Left        string
	Message     string
	At          moment
}

// progressOf says how far a run is; nil when it has not said.
func (l language) progressOf(p *state.Progress, at pace, now time.Time) *progress {
	if p == nil {
		return nil
	}
	shown := &progress{Done: strconv.FormatInt(p.Done, 10), Text: l.say("run.done", number(p.Done)), Message: p.Message, At: l.moment(p.At, now)}
	if p.Total > 0 {
		shown.Total = strconv.FormatInt(p.Total, 10)
		shown.Done = strconv.FormatInt(min(p.Done, p.Total), 10)
		shown.Text = l.say("run.of", number(p.Done), number(p.Total))
		shown.Share = percent(min(float64(p.Done)/float64(p.Total), 1))
	}
	rate := at.rate(p)
	if rate <= 0 {
		return shown
	}
	shown.Rate = l.say("run.rate", rateText(rate))
	if left := float64(p.Total-p.Done) / rate; p.Total > p.Done && left < year.Seconds() {
		shown.Left = l.say("run.left", l.span(time.Duration(max(left, 1)*float64(time.Second)).Round(time.Second)))
	}
	return shown
}

func rateText(rate float64) string {
	if rate >= 10 {
		return number(int64(rate))
	}
	return strconv.FormatFloat(rate, 'g', 2, 64)
}

// pace is from where on an attempt's rate counts.
type pace struct {
	attempt int
	done    int64
	at      time.Time
}

// leastPace is how long there must have been progress before a rate is told.
const leastPace = time.Second

// rate is how much was done in a second since then; 0 when it cannot be told.
func (s pace) rate(p *state.Progress) float64 {
	took := p.At.Sub(s.at)
	if s.at.IsZero() || took < leastPace || p.Done <= s.done {
		return 0
	}
	return float64(p.Done-s.done) / took.Seconds()
}

// keptPaces is of how many runs it is remembered from where on their rate counts.
const keptPaces = 500

// paces remembers how far runs were when this instance first looked. A first attempt began at nothing, when it
// started; one that goes on from a checkpoint began at what nobody but the job knows.
type paces struct {
	mu   sync.Mutex
	kept map[string]pace
}

func newPaces() *paces { return &paces{kept: make(map[string]pace)} }

// of is from where on the rate of a run counts that is now as far as p.
func (s *paces) of(r *state.Run, p *state.Progress) pace {
	if p == nil || p.At.Before(r.StartedAt) { // of an earlier attempt
		return pace{}
	}
	if r.Attempt <= 1 {
		return pace{attempt: r.Attempt, at: r.StartedAt}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Job + "/" + r.ID
	if first, ok := s.kept[key]; ok && first.attempt == r.Attempt && first.done <= p.Done {
		return first
	}
	if len(s.kept) >= keptPaces {
		clear(s.kept) // they begin anew, which costs a moment's rate
	}
	first := pace{attempt: r.Attempt, done: p.Done, at: p.At}
	s.kept[key] = first
	return first
}
