package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/etcdcron/etcdcron/internal/fault"
)

// query reads the parameters of a request, each once. The first fault is kept, and a parameter that nobody has read
// is one: a filter that is misspelled must not list everything.
type query struct {
	left url.Values
	err  error
}

func queryOf(c *call) *query {
	values, err := url.ParseQuery(c.URL.RawQuery)
	q := &query{left: values}
	if err != nil {
		q.fail(err)
	}
	return q
}

func (q *query) fail(err error) {
	if q.err == nil {
		q.err = &fault.Error{Kind: fault.BadInput, Err: err, Hint: "GET /v1/openapi.yaml lists the parameters"}
	}
}

// all are the values of a parameter.
func (q *query) all(name string) []string {
	values := q.left[name]
	delete(q.left, name)
	return values
}

// text is the value of a parameter that is given once at most.
func (q *query) text(name string) string {
	switch values := q.all(name); len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	default:
		q.fail(fmt.Errorf("%s is given %d times", name, len(values)))
		return ""
	}
}

// number is a whole number from 1 to limit; otherwise when it is not given.
func (q *query) number(name string, otherwise, limit int) int {
	text := q.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		q.fail(fmt.Errorf("%s=%s: use a number from 1 to %d", name, text, limit))
		return otherwise
	}
	return n
}

// flag is true or false; nil when it is not given.
func (q *query) flag(name string) *bool {
	text := q.text(name)
	switch text {
	case "":
	case "true", "false":
		return new(text == "true")
	default:
		q.fail(fmt.Errorf("%s=%s: use true or false", name, text))
	}
	return nil
}

// instant is a time; zero when it is not given.
func (q *query) instant(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fail(fmt.Errorf("%s=%s: write an instant with its offset, such as 2026-10-31T04:00:00Z (and + as %%2B)", name, text))
	}
	return t
}

// words are the values of a parameter that may be given several times, of those allowed.
func words[T ~string](q *query, name string, allowed ...T) []T {
	var all []T
	for _, word := range q.all(name) {
		if !slices.Contains(allowed, T(word)) {
			q.fail(fmt.Errorf("%s=%s: use one of %s", name, word, joined(allowed)))
		}
		all = append(all, T(word))
	}
	return all
}

func joined[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// end is the first fault of all.
func (q *query) end() error {
	if len(q.left) > 0 {
		q.fail(errors.New("there is no parameter " + slices.Sorted(maps.Keys(q.left))[0]))
	}
	return q.err
}
