package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/doctor"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/leader"
	"github.com/etcdcron/etcdcron/state"
)

// documented are the sections of docs/cli-json.md and the type whose fields each lists. Whatever a command prints as
// JSON is one of them, and what they hold is, too.
var documented = map[string]reflect.Type{
	"job":            reflect.TypeFor[inspect.Job](),
	"description":    reflect.TypeFor[inspect.Description](),
	"definition":     reflect.TypeFor[state.Spec](),
	"retry":          reflect.TypeFor[state.RetrySpec](),
	"alert":          reflect.TypeFor[state.AlertSpec](),
	"status":         reflect.TypeFor[state.JobStatus](),
	"incident":       reflect.TypeFor[state.Incident](),
	"outcomes":       reflect.TypeFor[state.Outcomes](),
	"control":        reflect.TypeFor[state.Control](),
	"request":        reflect.TypeFor[state.Request](),
	"live-run":       reflect.TypeFor[inspect.LiveRun](),
	"run":            reflect.TypeFor[state.Run](),
	"attempt":        reflect.TypeFor[state.Attempt](),
	"progress":       reflect.TypeFor[state.Progress](),
	"run-details":    reflect.TypeFor[inspect.RunDetails](),
	"checkpoint":     reflect.TypeFor[inspect.Checkpoint](),
	"output":         reflect.TypeFor[runOutput](),
	"at":             reflect.TypeFor[inspect.At](),
	"overview":       reflect.TypeFor[inspect.Overview](),
	"running-run":    reflect.TypeFor[inspect.RunningRun](),
	"next-job":       reflect.TypeFor[inspect.NextJob](),
	"failing-job":    reflect.TypeFor[inspect.FailingJob](),
	"leader":         reflect.TypeFor[leader.Info](),
	"instance":       reflect.TypeFor[inspect.Instance](),
	"handover":       reflect.TypeFor[handover](),
	"finding":        reflect.TypeFor[doctor.Finding](),
	"health":         reflect.TypeFor[healthAnswer](),
	"asked":          reflect.TypeFor[steer.Asked](),
	"controlled":     reflect.TypeFor[steer.Controlled](),
	"asked-backfill": reflect.TypeFor[steer.AskedBackfill](),
	"preview":        reflect.TypeFor[steer.Preview](),
	"backfill-end":   reflect.TypeFor[backfillEnd](),
	"valid-job":      reflect.TypeFor[validJob](),
	"version":        reflect.TypeFor[build](),
}

var opaque = []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[state.Duration]()}

// fieldsOf are the names that a type has in JSON, and the types of what they hold.
func fieldsOf(typ reflect.Type) (names []string, holds []reflect.Type) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			more, held := fieldsOf(f.Type)
			names, holds = append(names, more...), append(holds, held...)
		case name != "" && name != "-":
			names, holds = append(names, name), append(holds, f.Type)
		}
	}
	return names, holds
}

// The JSON of every command is documented, field by field, in each language; and nothing else is.
func TestJSONIsDocumented(t *testing.T) {
	t.Parallel()
	section, field := regexp.MustCompile(`(?m)^### .*<a id="([a-z-]+)"></a>$`), regexp.MustCompile("(?m)^\\| `([a-z_]+)`")
	for _, file := range []string{"../../docs/cli-json.md", "../../docs/cli-json.zh-CN.md"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := map[string]bool{}
		at := section.FindAllSubmatchIndex(text, -1)
		for i, m := range at {
			name, end := string(text[m[2]:m[3]]), len(text)
			if i < len(at)-1 {
				end = at[i+1][0]
			}
			typ := documented[name]
			require.NotNil(t, typ, "%s: section %s", file, name)
			require.False(t, found[name], "%s: section %s is there twice", file, name)
			found[name] = true
			var listed []string
			for _, f := range field.FindAllSubmatch(text[m[1]:end], -1) {
				listed = append(listed, string(f[1]))
			}
			names, _ := fieldsOf(typ)
			slices.Sort(names)
			slices.Sort(listed)
			if embedded := sectionOfEmbedded(typ); embedded != "" {
				require.Contains(t, string(text[m[1]:end]), "(#"+embedded+")", "%s: section %s", file, name)
				more, _ := fieldsOf(documented[embedded])
				names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(more, n) })
			}
			require.Equal(t, names, listed, "%s: section %s", file, name)
		}
		for name := range documented {
			require.True(t, found[name], "%s: section %s is missing", file, name)
		}
	}
}

// sectionOfEmbedded is the section of the type that a type embeds, to which its own section refers.
func sectionOfEmbedded(typ reflect.Type) string {
	for f := range typ.Fields() {
		for name, other := range documented {
			if f.Anonymous && f.Type == other {
				return name
			}
		}
	}
	return ""
}

// What the documented types hold is documented as well.
func TestJSONIsDocumented_AllTheWayDown(t *testing.T) {
	t.Parallel()
	for name, typ := range documented {
		_, holds := fieldsOf(typ)
		for _, held := range holds {
			for held.Kind() == reflect.Pointer || held.Kind() == reflect.Slice || held.Kind() == reflect.Map {
				held = held.Elem()
			}
			if held.Kind() != reflect.Struct || slices.Contains(opaque, held) {
				continue
			}
			is := false
			for _, other := range documented {
				is = is || other == held
			}
			require.True(t, is, "%s holds %s, which has no section", name, held)
		}
	}
}
