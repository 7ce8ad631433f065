package httpapi_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// contract is openapi.yaml, with every object closed: an answer may hold nothing that is not described.
type contract struct {
	doc    *openapi3.T
	router routers.Router

	mu   sync.Mutex
	seen map[string]bool // "GET /v1/jobs 200"
}

var theContract = sync.OnceValue(func() *contract {
	file := httpGet("/v1/openapi.yaml")
	var tree map[string]any
	if err := yaml.Unmarshal(file, &tree); err != nil {
		panic(err)
	}
	delete(tree, "servers") // the router takes / for a path of its own
	for name, schema := range tree["components"].(map[string]any)["schemas"].(map[string]any) {
		if s := schema.(map[string]any); name != "RunFields" && (s["type"] == "object" || s["allOf"] != nil) {
			s["unevaluatedProperties"] = false
		}
	}
	closed, err := yaml.Marshal(tree)
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(closed)
	if err != nil {
		panic(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return &contract{doc: doc, router: router, seen: make(map[string]bool)}
})

// check requires an answer to be as it is described. A path or a method that is not, must be answered so, unless it is
// the web page's.
func (c *contract) check(t *testing.T, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	route, params, err := c.router.FindRoute(req)
	switch {
	case err != nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		return
	case err != nil:
		require.Contains(t, []int{400, 401, 403, 404, 405}, resp.StatusCode, "%s %s: %s", req.Method, req.URL, body)
		return
	}
	c.saw(strings.Join([]string{route.Method, route.Path, resp.Status[:3]}, " "))
	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   resp.Header.Get("Content-Type") == "application/yaml", // it would be decoded
		},
	}), "%s %s: %s", req.Method, req.URL, body)
}

func (c *contract) saw(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what] = true
}

func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, theContract().doc.Validate(t.Context()))
}

// A field that is not described is found.
func TestContractIsClosed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"unknown field": `{"instances": [{"instance":"a","host":"h","pid":1,"started_at":"2026-11-30T16:29:35Z","leads":true,"more":1}]}`,
		"no field":      `{"instances": [{"instance":"a","host":"h","pid":1,"started_at":"2026-11-30T16:29:35Z"}]}`,
		"another type":  `{"instances": [{"instance":"a","host":"h","pid":"1","started_at":"2026-11-30T16:29:35Z","leads":true}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := theContract().doc.Components.Schemas["InstanceList"].Value
			var value any
			require.NoError(t, yaml.Unmarshal([]byte(body), &value))
			require.Error(t, schema.VisitJSON(value, openapi3.EnableJSONSchema2020()))
		})
	}
}

// requireAllSeen requires that every operation was answered, and well. What a test cannot bring about easily (a body
// that does not come, an etcd that is out of order) has tests of its own.
func (c *contract) requireAllSeen(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
				if status[0] == '2' {
					require.True(t, c.seen[method+" "+path+" "+status], "%s %s was never answered with %s", method, path, status)
				}
			}
		}
	}
}
