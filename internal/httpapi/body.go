package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"

	"github.com/etcdcron/etcdcron/internal/fault"
)

// readBody reads all of a request's body, which is JSON or empty, and not large.
func readBody(w http.ResponseWriter, r *http.Request) (io.Reader, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return bytes.NewReader(nil), nil
	}
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close") // rather than read all that
		return nil, tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, refuse(http.StatusRequestTimeout, codeBodyTimeout, "the body did not come in time", "")
	case err != nil:
		return nil, &fault.Error{Kind: fault.BadInput, Err: fmt.Errorf("read the body: %w", err)}
	case len(body) == 0:
		return bytes.NewReader(nil), nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, codeBadMediaType, "the body must be JSON", "send the header Content-Type: application/json")
	}
	return bytes.NewReader(body), nil
}

func tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, codeBodyTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody), "")
}
