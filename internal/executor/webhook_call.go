package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// Webhook returns a handler that makes w's request for each attempt. It returns nil if the answer says success,
// an error that wraps the cause of its context if that ended, and otherwise an error that says what was answered,
// marked as [cronrunner.Permanent] or with [cronrunner.RetryAfter] as it has to be. No error has a header's value or
// a URL's query in it. Safe for concurrent use.
func (e *Executor) Webhook(w Webhook) cronrunner.Handler {
	own := &ownTransport{}
	return func(ctx context.Context, run *cronrunner.Run) error { return w.do(ctx, run, e.log, e.transports, own) }
}

// call is one request of a webhook, with what it leads to.
type call struct {
	Webhook

	run     attempt
	bare    bool // people are shown no more of a URL than its host
	secrets secrets
	headers http.Header
	body    []byte
}

func (w Webhook) do(ctx context.Context, run attempt, log *zap.Logger, shared *transports, own *ownTransport) error {
	log = logOf(log, run)
	if err := w.Check(); err != nil {
		return cronrunner.Permanent(err)
	}
	c := &call{Webhook: w, run: run}
	checkpoint, err := restored(ctx, run, log)
	if err != nil {
		return err
	}
	if err := c.prepare(traceHeaders(ctx), checkpoint); err != nil {
		return err
	}
	transport, err := shared.of(w, own)
	if err != nil {
		return err
	}
	err = c.exchange(ctx, transport, c.read)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return err
}

// payload is the run as JSON: what a webhook is told.
type payload struct {
	Job          string            `json:"job"`
	RunID        string            `json:"run_id"`
	ScheduledAt  time.Time         `json:"scheduled_at"`
	Attempt      int               `json:"attempt"`
	FencingToken int64             `json:"fencing_token"`
	Trigger      string            `json:"trigger"`
	Args         map[string]string `json:"args"`
	Checkpoint   json.RawMessage   `json:"checkpoint"` // null when there is none
}

// prepare makes headers, beside those that say where the trace is, and body. Its errors are of the definition, or of a
// secret that cannot be had.
func (c *call) prepare(traced http.Header, checkpoint json.RawMessage) error {
	info := infoOf(c.run)
	at := info.scheduledAt.UTC()
	c.headers = http.Header{
		"User-Agent":             {"etcdcron"},
		"Idempotency-Key":        {info.job + "/" + info.id},
		"Etcdcron-Job":           {info.job},
		"Etcdcron-Run-Id":        {info.id},
		"Etcdcron-Scheduled-At":  {at.Format(time.RFC3339)},
		"Etcdcron-Attempt":       {strconv.Itoa(info.attempt)},
		"Etcdcron-Fencing-Token": {strconv.FormatInt(info.fencingToken, 10)},
	}
	maps.Copy(c.headers, traced)
	contentType := ""
	switch {
	case c.Body != nil:
		c.body = []byte(*c.Body)
		if contentType = "text/plain; charset=utf-8"; json.Valid(c.body) {
			contentType = "application/json"
		}
	case methods[c.method()]:
		args := info.args
		if args == nil {
			args = map[string]string{} // {} and not null
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(payload{
			Job: info.job, RunID: info.id, ScheduledAt: at, Attempt: info.attempt, FencingToken: info.fencingToken,
			Trigger: info.trigger, Args: args, Checkpoint: checkpoint,
		})
		if err != nil {
			return cronrunner.Permanent(fmt.Errorf("the run cannot be put into JSON: %w", err))
		}
		c.body, contentType = bytes.TrimSuffix(b.Bytes(), []byte("\n")), "application/json"
	}
	if contentType != "" {
		c.headers.Set("Content-Type", contentType)
	}
	return c.addOwn()
}

// addOwn adds the headers that the webhook has of its own, and knows from then on what is secret.
func (c *call) addOwn() error {
	for name, value := range c.Headers {
		text, err := value.find()
		if err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
		c.headers.Set(name, text)
		if value.isSecret(name) {
			c.secrets.add(text)
		}
	}
	c.secrets.addQuery(c.URL)
	return nil
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// exchange makes the request, follows redirects as far as is safe, and has the answer read.
func (c *call) exchange(
	ctx context.Context, transport http.RoundTripper, read func(ctx context.Context, giveUp context.CancelFunc, resp *http.Response) error,
) error {
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // follow does it
	}
	ctx, cancel := context.WithCancel(ctx) // so that an answer that is not read to its end is given up
	defer cancel()
	address, err := url.Parse(c.URL)
	if err != nil {
		return err // cannot be: Check has read it
	}
	for hops := 0; ; hops++ {
		resp, err := c.send(ctx, client, address)
		if err != nil {
			return err
		}
		if !isRedirect(resp) {
			defer resp.Body.Close()
			return read(ctx, cancel, resp)
		}
		next, err := c.follow(resp, hops)
		discard(resp)
		if err != nil {
			return cronrunner.Permanent(err)
		}
		address = next
	}
}

// send makes one request. GetBody is left out so that net/http does not send it a second time by itself when a
// connection breaks, which it does with an Idempotency-Key: each request is an attempt that is on record.
func (c *call) send(ctx context.Context, client *http.Client, address *url.URL) (*http.Response, error) {
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method(), address.String(), body)
	if err != nil {
		return nil, cronrunner.Permanent(errors.New("the request cannot be made of its url")) // cannot be: Check has read it
	}
	req.GetBody = nil
	req.Header = c.headers.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer from %s: %s", address.Host, c.plain(err))
	}
	return resp, nil
}

// userinfo is what of a URL that somebody else wrote, a proxy's for one, must not show in an error.
var userinfo = regexp.MustCompile(`://[^/\s"@]*@`)

// plain is an error of net/http without the URL that it begins with, and without secrets.
func (c *call) plain(err error) string {
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return userinfo.ReplaceAllString(c.secrets.hide(err.Error()), "://"+hidden+"@")
}

func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow is where a redirect leads to, if it is followed. It must not lead our headers to somebody else, or turn
// the request into another one.
func (c *call) follow(resp *http.Response, hops int) (*url.URL, error) {
	from := resp.Request.URL
	to, err := resp.Location()
	if err != nil {
		return nil, fmt.Errorf("answered %s without a Location that can be read; write the final url into the jobs file", statusText(resp))
	}
	refuse := func(why string) (*url.URL, error) {
		return nil, fmt.Errorf("answered %s, a redirect to %s, which is not followed: %s", statusText(resp), c.secrets.hide(c.shown(to)), why)
	}
	keeps := resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect
	switch {
	case !keeps && c.method() != http.MethodGet && c.method() != http.MethodHead:
		return refuse("it would turn the " + c.method() + " into a GET; write the final url into the jobs file")
	case !strings.EqualFold(from.Hostname(), to.Hostname()):
		return refuse("it is another host; write the final url into the jobs file")
	case to.Scheme != from.Scheme && (from.Scheme != "http" || to.Scheme != "https"):
		return refuse("it is not as safe as " + from.Scheme)
	case port(to) != port(from) && (port(from) != "80" || port(to) != "443"):
		return refuse("it is another port; write the final url into the jobs file")
	case hops == maxRedirects:
		return refuse(fmt.Sprintf("it is one more than %d", maxRedirects))
	}
	to.User, to.Fragment = nil, ""
	return to, nil
}

func (c *call) shown(address *url.URL) string {
	if c.bare {
		return shownHost(address)
	}
	return shown(address)
}

func port(address *url.URL) string {
	switch {
	case address.Port() != "":
		return address.Port()
	case address.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// discard lets the connection be used again, if little is left to read.
func discard(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 4<<10) //nolint:errcheck // then it is closed
	resp.Body.Close()
}

func statusText(resp *http.Response) string {
	if text := http.StatusText(resp.StatusCode); text != "" {
		return fmt.Sprintf("%d %s", resp.StatusCode, text)
	}
	return strconv.Itoa(resp.StatusCode)
}
