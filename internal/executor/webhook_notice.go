package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
)

// Notify returns a [cronrunner.Alert]'s Notify that posts each notice to w as JSON, with its key as the
// Idempotency-Key. It returns nil if the answer says success. Its error is [cronrunner.Permanent] if the answer
// refuses the notice for good, and has [cronrunner.RetryAfter]'s mark if it asks for that. What is wrong here, a secret
// that is not there for one, is not permanent: another instance may have it. No error has a header's value in it, nor
// what comes after the host in w's URL: of the addresses of chat tools, that is the secret. Safe for concurrent use.
func (e *Executor) Notify(w Webhook) func(ctx context.Context, n cronrunner.Notice) error {
	return func(ctx context.Context, n cronrunner.Notice) error { return w.tell(ctx, n, e.transports) }
}

// Receiver is whom notices go to, for people: no more of the URL than its host.
func (w Webhook) Receiver() string {
	address, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return shownHost(address)
}

func shownHost(address *url.URL) string { return address.Scheme + "://" + address.Host + "/…" }

func (w Webhook) tell(ctx context.Context, n cronrunner.Notice, shared *transports) error {
	c := &call{Webhook: w, bare: true}
	if err := c.prepareNotice(n); err != nil {
		return errors.New(err.Error())
	}
	err := c.exchange(ctx, shared.shared, readReceipt)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	}
	return err
}

func (c *call) prepareNotice(n cronrunner.Notice) error {
	if err := c.Check(); err != nil {
		return err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(n); err != nil {
		return fmt.Errorf("the alert cannot be put into JSON: %w", err)
	}
	c.body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	c.headers = http.Header{
		"User-Agent":      {"etcdcron"},
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {n.Key},
		"Etcdcron-Job":    {n.Job},
	}
	c.secrets.addPath(c.URL)
	return c.addOwn()
}

// readReceipt takes a status, and of the rest of the answer no more than lets the connection be used again.
func readReceipt(_ context.Context, giveUp context.CancelFunc, resp *http.Response) error {
	defer time.AfterFunc(refusalTime, giveUp).Stop()
	discard(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp, time.Now())
	}
	return nil
}

// addPath has the path of a URL be secret, each part of it that is long enough and all of it.
func (s *secrets) addPath(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	for _, path := range []string{u.Path, u.EscapedPath()} {
		if len(path) >= minQuery {
			s.add(path)
		}
		for part := range strings.SplitSeq(path, "/") {
			if len(part) >= minQuery {
				s.add(part)
			}
		}
	}
}
