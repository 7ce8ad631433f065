package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// RequestKind is what somebody asks for.
type RequestKind string

// The kinds of requests.
const (
	AskTrigger  RequestKind = "trigger"  // run the job now
	AskRetry    RequestKind = "retry"    // do a run that is over once more, as a new run
	AskBackfill RequestKind = "backfill" // run the scheduled times of a range in the past, one after the other
	AskCancel   RequestKind = "cancel"   // end a run
	AskResign   RequestKind = "resign"   // have the leader hand over; see Store.AskToResign
)

// Request is something that people, or another program, ask of a job, or of the leader. It is a key until it is acted on, and
// goes in the transaction that acts on it: so it is acted on once, whoever leads and however often that
// changes.
type Request struct {
	Kind   RequestKind `json:"kind"`
	ID     string      `json:"id,omitempty"`  // of a trigger and a retry: of the run that comes of it
	Job    string      `json:"job,omitempty"` // none of a resign
	Run    string      `json:"run,omitempty"` // that is to be canceled or done once more
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	At     time.Time   `json:"at"` // by the clock of whoever asked

	// ScheduledAt is the scheduled time that the new run works on; of a trigger, when it was asked for.
	ScheduledAt time.Time         `json:"scheduled_at,omitzero"`
	Args        map[string]string `json:"args,omitempty"` // for the handler

	// A backfill runs the scheduled times in [From, To]. Next is the first that has not begun, Done how many
	// have, and Total how many there were when it was asked for.
	// (Total is what the asker has counted, for people; 0 if he has not.)
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	Next time.Time `json:"next,omitzero"`
	Done int64     `json:"done,omitempty"`
	// Schedule is what the job's schedule was when it was asked for. With another one the range would hold other
	// times, and other numbers of them, than were asked for: the rest of a backfill is dropped then.
	Schedule string `json:"schedule,omitempty"`
	Total    int64  `json:"total,omitempty"`

	// Term is the one that is to end, of a resign.
	Term int64 `json:"term,omitempty"`

	// Replaced tells a cancel that the overlap policy asked for.
	Replaced bool `json:"replaced,omitempty"`
}

// Standing is a request that was not acted on yet, with the mod revision of its key, which acting on it
// compares.
type Standing struct {
	Request

	Key      string
	Revision int64
}

// Same reports whether other is the same request, before or after a part of it was acted on.
func (r Standing) Same(other Standing) bool { return r.Key == other.Key }

// Acted is the request that a transition acts on. Rest is what is left of it; nil when nothing is.
type Acted struct {
	Standing

	Rest *Request
}

// MaxArgs is the greatest size of all arguments of a run together, in bytes.
const MaxArgs = 4 << 10

// Submit writes a request and returns it as it stands, with its id. The request has been made when Submit
// returns nil; whoever leads, now or later, acts on it. Its id and its time are by the clock of this machine, the
// asker's. Errors, which name what is wrong: ErrNotFound,
// ErrRetired, ErrPaused, ErrRunOver (cancel), ErrRunNotOver (retry), ErrBadRequest; ctx's when the outcome
// stays unknown.
func (s *Store) Submit(ctx context.Context, r Request) (Request, error) {
	if err := r.check(); err != nil {
		return r, err
	}
	r.By, r.Reason = CutHead(r.By, MaxNote), CutHead(r.Reason, MaxNote)
	r.At = time.Now().UTC().Truncate(time.Millisecond)
	for range maxContention {
		def, err := s.Job(ctx, r.Job)
		if err == nil {
			r, err = s.complete(ctx, r, def)
		}
		if err != nil {
			return r, err
		}
		switch err = s.submit(ctx, r, def); {
		case err == nil:
			return r, nil
		case !errors.Is(err, errAskAgain):
			return r, err
		}
	}
	return r, fmt.Errorf("job %s: %w", r.Job, ErrContended)
}

// ErrBadRequest is a request that makes no sense.
var ErrBadRequest = errors.New("bad request")

// argName is what can be part of the name of an environment variable.
var argName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *Request) check() error {
	size := 0
	for k, v := range r.Args {
		size += len(k) + len(v)
		if !argName.MatchString(k) {
			return fmt.Errorf("%w: argument %q: use letters, digits and '_', not beginning with a digit", ErrBadRequest, k)
		}
	}
	switch {
	case size > MaxArgs:
		return fmt.Errorf("%w: the arguments have %d bytes, at most %d are allowed", ErrBadRequest, size, MaxArgs)
	case (r.Kind == AskCancel || r.Kind == AskRetry) && r.Run == "":
		return fmt.Errorf("%w: %s of which run?", ErrBadRequest, r.Kind)
	case r.Kind == AskBackfill && (r.From.IsZero() || r.To.Before(r.From)):
		return fmt.Errorf("%w: a backfill needs a range, from %s to %s is none", ErrBadRequest, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	case r.Kind == AskBackfill && r.From.UTC().Year() < 1970:
		return fmt.Errorf("%w: a backfill from %s: use a year from 1970 on", ErrBadRequest, r.From.UTC().Format(time.DateTime))
	case r.Kind == AskResign && r.Term <= 0:
		return fmt.Errorf("%w: resign which term?", ErrBadRequest)
	case r.Kind == AskResign, r.Kind == AskTrigger, r.Kind == AskBackfill, r.Kind == AskCancel, r.Kind == AskRetry:
		return nil
	default:
		return fmt.Errorf("%w: %q is no kind of request", ErrBadRequest, r.Kind)
	}
}

// complete checks a request against the job, and the run if it is about one, and fills in what it is to have.
func (s *Store) complete(ctx context.Context, r Request, def Definition) (Request, error) {
	if r.Kind == AskCancel {
		run, _, err := s.Run(ctx, r.Job, r.Run)
		if err == nil && run.Status.Final() {
			err = fmt.Errorf("run %s of job %s is %s: %w", r.Run, r.Job, run.Status, ErrRunOver)
		}
		return r, err
	}
	switch {
	case def.Broken != nil:
		return r, def.Broken
	case def.Spec.Retired:
		return r, fmt.Errorf("job %s: %w", r.Job, ErrRetired)
	case def.Control.Paused:
		return r, fmt.Errorf("job %s: %w", r.Job, ErrPaused)
	}
	switch r.Kind { //nolint:exhaustive // cancel is above
	case AskTrigger:
		r.ID, r.ScheduledAt = newRequestID(r.At, "m"), r.At
	case AskBackfill:
		r.ID = newRequestID(r.At, "b")
		r.From, r.To = r.From.UTC(), r.To.UTC()
		r.Next, r.Schedule = r.From, def.Spec.ScheduleID()
	case AskRetry:
		run, _, err := s.Run(ctx, r.Job, r.Run)
		if err != nil {
			return r, err
		}
		if !run.Status.Final() {
			return r, fmt.Errorf("run %s of job %s is %s: %w", r.Run, r.Job, run.Status, ErrRunNotOver)
		}
		r.ID, r.ScheduledAt = newRequestID(r.At, "r"), run.ScheduledAt
		if r.Args == nil {
			r.Args = run.Args
		}
	}
	return r, nil
}

// newRequestID is a new id: the second as every run id has it, a letter for what was asked, the millisecond in
// two digits of base 32, so that what was asked for in the same way sorts by time, and six random letters and
// digits: two requests of one id would be taken for one, and four were seen to meet among some hundred in a
// millisecond.
func newRequestID(at time.Time, kind string) string {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	ms := at.Nanosecond() / int(time.Millisecond)
	return RunID(at) + "-" + kind + string([]byte{digits[ms/32], digits[ms%32]}) + strings.ToLower(rand.Text()[:6])
}

// errAskAgain is a request that was refused since something has changed, or since its id is taken.
var errAskAgain = errors.New("ask again")

// submit writes the request if the job is as it was read and no run and no request has its id.
func (s *Store) submit(ctx context.Context, r Request, def Definition) error {
	key, runKey := s.keys.Request(r.ID), s.keys.Run(r.Job, r.ID)
	if r.Kind == AskCancel {
		key, runKey = s.keys.Cancel(r.Job, r.Run), s.keys.Run(r.Job, r.Run)
	}
	value := encode(r)
	m := Mutation{
		Job:  r.Job,
		Then: []clientv3.Op{clientv3.OpPut(key, string(value))},
		Else: []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(runKey)},
	}
	if r.Kind == AskCancel {
		// A second one is as good as the first.
		m.If = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(runKey), ">", 0)}
	} else {
		m.If = []clientv3.Cmp{
			guard{key: s.keys.Spec(r.Job), want: def.SpecRev}.cmp(), guard{key: s.keys.Control(r.Job), want: def.ControlRev}.cmp(),
			guard{key: key}.cmp(), guard{key: runKey}.cmp(),
		}
	}
	res, err := s.settle(ctx, m)
	if err != nil {
		return fmt.Errorf("%s of job %s: %w", r.Kind, r.Job, err)
	}
	if res.Succeeded {
		return nil
	}
	// An earlier try, whose answer was lost, may have landed, and a part of it, or all, been acted on since. The id
	// is random, so what stands under it and says the same was asked for by this very request.
	stands := firstKVs(res)
	if r.Kind == AskCancel {
		return errAskAgain // the run is gone
	}
	if kv := stands[0]; kv != nil {
		if s, err := DecodeRequest(kv); err == nil && s.Kind == r.Kind && s.Job == r.Job && s.By == r.By && s.At.Equal(r.At) {
			return nil
		}
	}
	if kv := stands[1]; kv != nil {
		if run, err := decodeRun(kv); err == nil && run.RequestedBy == r.By && run.ScheduledAt.Equal(r.ScheduledAt) {
			return nil
		}
	}
	return errAskAgain
}

// AskToReplace asks for a run to be canceled that goes on elsewhere, since the overlap policy has a newer one wait
// for it, if the term is held and nobody has asked yet. Errors: ErrNotLeading, ErrNotFound.
func (s *Store) AskToReplace(ctx context.Context, term Term, job, run, by string) error {
	key, runKey := s.keys.Cancel(job, run), s.keys.Run(job, run)
	r := Request{
		Kind: AskCancel, Job: job, Run: run, By: by, Reason: "a newer run takes its place", Replaced: true,
		At: time.Now().UTC().Truncate(time.Millisecond),
	}
	held := guard{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading}
	res, err := s.settle(ctx, Mutation{
		Job:  job,
		If:   []clientv3.Cmp{held.cmp(), guard{key: key}.cmp(), clientv3.Compare(clientv3.CreateRevision(runKey), ">", 0)},
		Then: []clientv3.Op{clientv3.OpPut(key, string(encode(r)))},
		Else: []clientv3.Op{clientv3.OpGet(term.Key), clientv3.OpGet(key)},
	})
	if err != nil || res.Succeeded {
		return err
	}
	switch stands := firstKVs(res); {
	case !held.holds(stands[0]):
		return fmt.Errorf("run %s of job %s: %w", run, job, ErrNotLeading)
	case stands[1] != nil:
		return nil // it is to be canceled already
	default:
		return fmt.Errorf("run %s of job %s: %w", run, job, ErrNotFound)
	}
}

// Withdraw takes back a request that was not acted on yet, or the rest of a backfill, and returns it as it stood.
// Its error is ErrNotFound when there is none of that id; any other leaves open whether it was taken back.
func (s *Store) Withdraw(ctx context.Context, id string) (Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	resp, err := s.client.Delete(ctx, s.keys.Request(id), clientv3.WithPrevKV())
	switch {
	case err != nil:
		return Standing{}, fmt.Errorf("withdraw request %s: %w", id, err)
	case len(resp.PrevKvs) == 0:
		return Standing{}, fmt.Errorf("request %s: %w", id, ErrNotFound)
	}
	return DecodeRequest(resp.PrevKvs[0])
}

// Requests are those that were not acted on yet, cancels and resigns after the others, the oldest first. One that cannot
// be decoded is left out.
func (s *Store) Requests(ctx context.Context) ([]Standing, error) {
	kvs, _, err := s.list(ctx, s.keys.Requests())
	if err != nil {
		return nil, err
	}
	var all []Standing
	for _, kv := range kvs {
		if r, err := DecodeRequest(kv); err == nil {
			all = append(all, r)
		}
	}
	return all, nil
}

// Request reads one request that was not acted on yet. Its error is ErrNotFound when there is none.
func (s *Store) Request(ctx context.Context, id string) (Standing, error) {
	kv, err := s.getOne(ctx, s.keys.Request(id))
	switch {
	case err != nil:
		return Standing{}, fmt.Errorf("read request %s: %w", id, err)
	case kv == nil:
		return Standing{}, fmt.Errorf("request %s: %w", id, ErrNotFound)
	}
	return DecodeRequest(kv)
}

// DecodeRequest reads a request's key. Its error is ErrBadRecord when the value cannot be decoded, and
// ErrBadRequest when it does not make sense, or not at that key: it was put there by hand, or by a later version.
func DecodeRequest(kv *mvccpb.KeyValue) (Standing, error) {
	r, err := decode[Request](string(kv.Key), kv.Value)
	s := Standing{Request: r, Key: string(kv.Key), Revision: kv.ModRevision}
	if err != nil {
		return s, err
	}
	if err := CheckJobName(r.Job); err != nil && r.Kind != AskResign {
		return s, fmt.Errorf("%s: %w: %w", kv.Key, ErrBadRequest, err)
	}
	at := "/requests/" + r.ID
	if r.Kind == AskCancel {
		at = "/requests/cancel/" + r.Job + "/" + r.Run
	} else if r.Kind == AskResign {
		at = "/requests/resign/" + strconv.FormatInt(r.Term, 10)
	} else if _, suffix, _ := strings.Cut(r.ID, "-"); suffix == "" {
		at = "/?" // an id of a request has a suffix
	} else if _, err := RunIDTime(r.ID); err != nil {
		return s, fmt.Errorf("%s: %w: %w", kv.Key, ErrBadRequest, err)
	}
	if !strings.HasSuffix(s.Key, at) {
		return s, fmt.Errorf("%s: %w: its key does not say the same", kv.Key, ErrBadRequest)
	}
	if err := r.check(); err != nil {
		return s, fmt.Errorf("%s: %w", kv.Key, err)
	}
	return s, nil
}

// Drop takes away a request, or the part of it that Acted says, that nothing can come of. It returns the
// revision at which it did. Errors: ErrNotLeading, ErrRequestGone.
func (s *Store) Drop(ctx context.Context, term Term, a Acted) (int64, error) {
	guards, ops := s.act(&a)
	guards = append([]guard{{key: term.Key, created: true, want: term.Revision, refused: ErrNotLeading}}, guards...)
	rev, stands, err := s.guarded(ctx, a.Job, guards, ops)
	if stands != nil && stands[1] != nil && a.Rest != nil && bytes.Equal(stands[1].Value, encode(a.Rest)) {
		return stands[1].ModRevision, nil // an earlier try, whose answer was lost, had landed
	}
	return rev, err
}

// act is what a transition adds for the request that it acts on; nothing when that is nil.
func (s *Store) act(a *Acted) (guards []guard, ops []clientv3.Op) {
	if a == nil {
		return nil, nil
	}
	op := clientv3.OpDelete(a.Key)
	if a.Rest != nil {
		op = clientv3.OpPut(a.Key, string(encode(a.Rest)))
	}
	return []guard{{key: a.Key, want: a.Revision, refused: ErrRequestGone}}, []clientv3.Op{op}
}
