package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

// Level is how much a finding matters. The levels are a contract.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, or could not be looked at
	Problem Level = "problem" // something does not work, or will not for long
)

// Finding is one thing that was looked at.
type Finding struct {
	Level   Level  `json:"level"`
	Check   string `json:"check"`   // what was looked at: etcd, latency, alarms, leader, instances, clocks, leases, permissions, jobs, runs, requests
	Message string `json:"message"` // what was found, and what it means
	Hint    string `json:"hint"`    // what to do about it; "" when there is nothing to do
}

// Config is what to look at, and with what.
type Config struct {
	Client *clientv3.Client // required
	Store  *state.Store     // required
	Root   string           // the prefix of everything, for hints
	// Timeout of each call. Default 5 s.
	Timeout time.Duration
	// Again is how long a run that looks lost has until it is looked at again: the leader takes it over within
	// moments. Default 3 s.
	Again time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// HTTP asks the instances for the time. Default one that follows no redirect.
	HTTP *http.Client
}

// Examine looks at everything, one thing after the other, and returns what it has found in that order. It ends early
// only when ctx does.
func Examine(ctx context.Context, cfg Config) []Finding {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Again <= 0 {
		cfg.Again = 3 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		defer cfg.HTTP.CloseIdleConnections()
	}
	e := &examination{Config: cfg}
	e.host, _ = os.Hostname() // only to say why an instance cannot be asked
	for _, look := range []func(context.Context){
		e.members, e.alarms, e.latency, e.leadership, e.instances, e.leases, e.jobs, e.requests,
	} {
		if ctx.Err() == nil {
			look(ctx)
		}
	}
	return e.findings
}

// examination is a look at everything.
type examination struct {
	Config

	host     string
	findings []Finding
	leads    bool
}

func (e *examination) sayf(level Level, check, hint, format string, args ...any) {
	e.findings = append(e.findings, Finding{Level: level, Check: check, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// blind says that something could not be looked at.
func (e *examination) blind(check, what string, err error) {
	if errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		e.sayf(Warning, check, "ask with the user root, or look with etcdctl", "not looked at: the user may not read %s", what)
		return
	}
	e.sayf(Warning, check, "again; a longer --command-timeout helps if etcd is slow", "not looked at: %s: %v", what, err)
}

// call is ctx for one call.
func (e *examination) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.Timeout)
}

// named are the first few of some names, and how many more there are.
func named(names []string) string {
	const most = 5
	if n := len(names) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// count is "1 job", "2 jobs".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
