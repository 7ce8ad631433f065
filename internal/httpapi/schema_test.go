package httpapi_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// Every field that an answer can have is described, also one that no test brings about; and none that it cannot have.
// What is always there is required.
func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]any{
		"Job": inspect.Job{}, "Description": inspect.Description{}, "LiveRun": inspect.LiveRun{}, "Instance": inspect.Instance{},
		"Checkpoint": inspect.Checkpoint{}, "Spec": state.Spec{}, "Retry": state.RetrySpec{}, "Alert": state.AlertSpec{},
		"JobStatus": state.JobStatus{}, "Incident": state.Incident{}, "Outcomes": state.Outcomes{}, "Control": state.Control{},
		"Request": state.Request{}, "Progress": state.Progress{}, "RunFields": state.Run{}, "Attempt": state.Attempt{}, "Lock": state.Lock{},
		"Leader": leader.Info{}, "Asked": steer.Asked{}, "AskedBackfill": steer.AskedBackfill{}, "Preview": steer.Preview{},
		"Controlled": steer.Controlled{}, "Readiness": httpapi.Readiness{},
	} {
		schema := theContract().doc.Components.Schemas[name]
		require.NotNil(t, schema, name)
		always, sometimes := fieldsOf(reflect.TypeOf(of))
		require.ElementsMatch(t, append(always, sometimes...), slices.Collect(maps.Keys(schema.Value.Properties)), name)
		for _, field := range schema.Value.Required {
			require.Contains(t, always, field, "%s may be left out of %s", field, name)
		}
	}
	details := theContract().doc.Components.Schemas["RunDetails"].Value.AllOf[1].Value
	always, _ := fieldsOf(reflect.TypeFor[inspect.RunDetails]())
	run, _ := fieldsOf(reflect.TypeFor[state.Run]())
	always = slices.DeleteFunc(always, func(field string) bool { return slices.Contains(run, field) })
	require.ElementsMatch(t, append(always, "lock"), propertiesOf(details))
}

func propertiesOf(s *openapi3.Schema) []string { return slices.Collect(maps.Keys(s.Properties)) }

// fieldsOf are the names of a type's fields in JSON: those that are always there, and those that are left out when
// they are zero.
func fieldsOf(of reflect.Type) (always, sometimes []string) {
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous, name == "-", !f.IsExported():
		case strings.Contains(options, "omit"):
			sometimes = append(sometimes, name)
		default:
			always = append(always, name)
		}
	}
	return always, sometimes
}
