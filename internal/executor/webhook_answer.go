package executor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/state"
)

const (
	// maxAnswer is how much of an answer that says success is read, in bytes; the rest is given up.
	maxAnswer = 16 << 20
	// maxRefusal and refusalTime bound the reading of an answer that does not.
	maxRefusal  = 256 << 10
	refusalTime = 5 * time.Second
	// maxNDJSON bounds one line of application/x-ndjson, in bytes. A checkpoint has its place in it.
	maxNDJSON = 4*state.MaxCheckpoint + 1<<10

	ndjson = "application/x-ndjson"
)

// read reads the answer, keeps the end of it as the run's output, and says how the attempt ended.
func (c *call) read(ctx context.Context, giveUp context.CancelFunc, resp *http.Response) error {
	kept := &hider{secrets: c.secrets, to: newTail(state.MaxOutput)}
	defer func() {
		kept.flush()
		c.run.SetOutput(kept.to.text())
	}()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer time.AfterFunc(refusalTime, giveUp).Stop()
		io.Copy(kept, io.LimitReader(resp.Body, maxRefusal)) //nolint:errcheck // the status is known
		return refusal(resp, time.Now())
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == ndjson {
		return c.readLines(ctx, resp.Body, kept)
	}
	n, err := io.Copy(kept, io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("the answer %s broke off after %d bytes: %s", statusText(resp), n, c.plain(err))
	default:
		return nil
	}
}

// refusal is what a status other than 2xx means for the run.
func refusal(resp *http.Response, now time.Time) error {
	err := fmt.Errorf("answered %s", statusText(resp))
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		return cronrunner.RetryAfter(err, retryAfter(resp.Header.Get("Retry-After"), now))
	default:
		return cronrunner.Permanent(err)
	}
}

// retryAfter is the pause that a Retry-After asks for, seconds or a date (RFC 9110 section 10.2.3); 0 for none.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	const most = uint64(cronrunner.MaxRetryPause / time.Second)
	return time.Duration(min(seconds, most)) * time.Second
}

// line is one line of an answer in application/x-ndjson: one of its fields.
type line struct {
	Progress   json.RawMessage `json:"progress"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	Output     *string         `json:"output"`
	Error      *string         `json:"error"`
	Permanent  bool            `json:"permanent"` // beside error
}

// readLines reads an answer that says as it goes on how far the work is. A line that cannot be taken ends the
// attempt: what it said would be lost, an error among it.
func (c *call) readLines(ctx context.Context, body io.Reader, kept *hider) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, maxNDJSON)
	for n := 1; scanner.Scan(); n++ {
		text := scanner.Bytes()
		if len(strings.TrimSpace(string(text))) == 0 {
			continue // a sign of life
		}
		var l line
		err := strictly(text, &l)
		if broke := scanner.Err(); broke != nil { // in the middle of this line
			break
		}
		if err == nil && l.Permanent && l.Error == nil {
			err = errors.New("permanent stands beside error")
		}
		if err != nil {
			return fmt.Errorf("line %d of the answer cannot be read: %s; it is JSON with progress, checkpoint, output or error", n, c.secrets.hide(err.Error()))
		}
		if err := c.take(ctx, &l, kept); err != nil {
			return err
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("a line of the answer has more than %d bytes", maxNDJSON)
	case err != nil:
		return fmt.Errorf("the answer broke off: %s", c.plain(err))
	default:
		return nil
	}
}

// take does what a line says. The next line is read only then, so that checkpoints keep their order.
func (c *call) take(ctx context.Context, l *line, kept *hider) error {
	if l.Progress != nil {
		r, err := parseReport(l.Progress)
		if err != nil {
			return err
		}
		c.run.Progress(r.Done, r.Total, c.secrets.hide(r.Message))
	}
	if l.Output != nil {
		kept.Write([]byte(*l.Output + "\n")) //nolint:errcheck // it never fails
	}
	if l.Checkpoint != nil {
		err := c.run.Checkpoint(ctx, l.Checkpoint)
		switch {
		case errors.Is(err, cronrunner.ErrCheckpointTooLarge):
			return cronrunner.Permanent(err)
		case err != nil:
			return err
		}
	}
	if l.Error == nil {
		return nil
	}
	err := errors.New(c.secrets.hide(cleanText([]byte(*l.Error))))
	if *l.Error == "" {
		err = errors.New("the answer says that it failed, and not why")
	}
	if l.Permanent {
		return cronrunner.Permanent(err)
	}
	return err
}
