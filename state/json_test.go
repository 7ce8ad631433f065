package state

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is written field by field is what encoding/json writes of the same value, so a field that one of them lacks,
// and text that one of them escapes otherwise, is found here.
func TestWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	sometimes := func(g *rapid.Generator[time.Time]) *rapid.Generator[any] {
		return rapid.OneOf(rapid.Just(time.Time{}), g).AsAny()
	}
	config := rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[time.Time](): sometimes(rapid.Custom(func(t *rapid.T) time.Time {
			at := time.Unix(rapid.Int64Range(-62_000_000_000, 253_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
			return at.In(rapid.SampledFrom([]*time.Location{time.UTC, time.FixedZone("", 20_700)}).Draw(t, "zone"))
		})),
		reflect.TypeFor[string]():  rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[ -~]{0,20}`)).AsAny(),
		reflect.TypeFor[float64](): rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e25, 1e25)).AsAny(),
	}}
	runs, statuses, locks := rapid.MakeCustom[Run](config), rapid.MakeCustom[JobStatus](config), rapid.MakeCustom[Lock](config)
	same := func(t *rapid.T, v any, written []byte) {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, string(want), string(written))
	}
	rapid.Check(t, func(t *rapid.T) {
		r := runs.Draw(t, "run")
		if len(r.Attempts) > MaxAttempts {
			r.Attempts = r.Attempts[:MaxAttempts]
		}
		st, l := statuses.Draw(t, "status"), locks.Draw(t, "lock")
		same(t, r, r.encode())
		same(t, st, st.encode())
		same(t, l, l.encode())
	})
}

func BenchmarkEncode(b *testing.B) {
	at := time.Date(2026, 11, 30, 1, 0, 0, 250_000_000, time.UTC)
	r := Run{
		Job: "daily_billing", ID: RunID(at), Trigger: BySchedule, ScheduledAt: at.Truncate(time.Second), Status: Succeeded, Attempt: 1,
		StartedAt: at, FinishedAt: at, DurationMS: 12, TimeoutMS: 3_600_000, Instance: "web-1-4711-abcde", Term: 12345, FencingToken: 123456,
	}
	st := JobStatus{UID: "0123456789abcdef", SucceededTotal: 1000, MeanDurationMS: 12.5}.Decided(at).Started(&r).Finished(&r)
	b.ReportAllocs()
	for b.Loop() {
		r.encode()
		st.encode()
	}
}
