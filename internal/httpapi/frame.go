package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// frame is the events of one revision, or a reset: that there may have been others before it, which are lost.
type frame struct {
	rev    int64
	reset  bool
	events []event
}

// event is something that has changed.
type event struct {
	kind state.Kind
	job  string // "" for one of no job, or of one that is not known
	data []byte
}

// change is an event as clients read it.
type change struct {
	Job     string `json:"job,omitempty"`
	ID      string `json:"id,omitempty"` // of the run, the instance, the candidate, the request
	Deleted bool   `json:"deleted"`
	Value   any    `json:"value"` // as it stands now; null when it is gone, or cannot be read
}

// maxEventError is how much of a run's error an event has; the record has all of it.
const maxEventError = 256

func newFrame(keys state.Keys, rev int64, changes []*clientv3.Event) *frame {
	f := &frame{rev: rev}
	for _, ev := range changes {
		p, ok := keys.PlaceOf(string(ev.Kv.Key))
		if !ok {
			continue
		}
		c := change{Job: p.Job, ID: p.ID, Deleted: ev.Type == mvccpb.Event_DELETE}
		switch {
		case c.Deleted:
			c.Job = jobOfRequest(p)
		case p.Kind == state.OfRun:
			c.Value = runInShort(ev.Kv)
		case json.Valid(ev.Kv.Value):
			c.Value = json.RawMessage(ev.Kv.Value)
		}
		if p.Kind == state.OfRequest && !c.Deleted {
			if r, err := state.DecodeRequest(ev.Kv); err == nil {
				c.Job = r.Job
			}
		}
		data, err := json.Marshal(c)
		if err != nil {
			continue // cannot be: all of it is fit for JSON
		}
		f.events = append(f.events, event{kind: p.Kind, job: c.Job, data: data})
	}
	return f
}

// jobOfRequest is the job of a key that is gone: of a request only a cancel's key tells.
func jobOfRequest(p state.Place) string {
	if of, ok := strings.CutPrefix(p.ID, "cancel/"); ok && p.Kind == state.OfRequest {
		job, _, _ := strings.Cut(of, "/")
		return job
	}
	return p.Job
}

// runInShort is a run's record without what may be long: its output, its earlier attempts, the rest of its error.
// It is nil when it cannot be decoded.
func runInShort(kv *mvccpb.KeyValue) any {
	r, err := state.DecodeRun(kv)
	if err != nil {
		return nil
	}
	r.Output, r.Attempts, r.Error = "", nil, state.CutHead(r.Error, maxEventError)
	return r
}

// size is about how much memory a frame takes.
func (f *frame) size() int {
	n := 128
	for i := range f.events {
		n += 64 + len(f.events[i].data)
	}
	return n
}

// write renders the frame for a client that wants the events of a job, or of all. The id comes with the last event
// of the revision, so that who resumes from an id has had all of it.
func (f *frame) write(b *bytes.Buffer, job string) {
	id := strconv.FormatInt(f.rev, 10)
	if f.reset {
		b.WriteString("event: reset\nid: " + id + "\ndata: {}\n\n")
		return
	}
	wanted := make([]*event, 0, len(f.events))
	for i := range f.events {
		if e := &f.events[i]; job == "" || e.job == "" || e.job == job {
			wanted = append(wanted, e)
		}
	}
	for i, e := range wanted {
		b.WriteString("event: " + string(e.kind) + "\n")
		if i == len(wanted)-1 {
			b.WriteString("id: " + id + "\n")
		}
		b.WriteString("data: ")
		b.Write(e.data)
		b.WriteString("\n\n")
	}
}
