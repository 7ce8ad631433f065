package state

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Whatever stands at the key of a record, a status or a request: no panic; and what can be read can be written, and reads
// as the same again.
func FuzzDecodeRecord(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", `{"job":1}`, `{"job":"a","id":"20261130T010000Z","trigger":"schedule","scheduled_at":"2026-11-30T01:00:00Z","status":"running","attempt":1}`,
		`{"job":"a","id":"20261130T010000Z","trigger":"catch_up","scheduled_at":"2026-11-30T01:00:00Z","status":"missed","reason":"superseded","count":3,"until":"2026-11-30T01:00:02Z"}`,
		`{"job":"a","id":"x","status":"succeeded","exit_code":0,"output":"\ud800\u0000","progress":{"done":1,"at":"2026-11-30T01:00:00Z"},"attempts":[{"attempt":1,"instance":"i","fencing_token":7}],"args":{"A":"b"}}`,
		`{"uid":"u","cursor":"2026-11-30T01:00:00Z","live":["a"],"running":1,"skipped_by_reason":{"overlap":2},"mean_duration_ms":1e400}`,
		`{"uid":"u","cursor":"2026-11-30T01:00:00Z","queue":["a","b"],"mean_duration_ms":0.1,"last_error":"<&>"}`,
		`{"kind":"backfill","id":"20261130T010000Z-b0abcd","job":"a","at":"2026-11-30T01:00:00Z","from":"2026-11-30T00:00:00Z","to":"2026-11-30T00:01:00Z","next":"2026-11-30T00:00:00Z"}`,
		`{"kind":"cancel","job":"a","run":"20261130T010000Z"}`, `{"run":"r","instance":"i"}`, `{"paused":true,"at":"0000-00-00T00:00:00Z"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if run, err := decode[Run]("record", data); err != nil {
			require.ErrorIs(t, err, ErrBadRecord)
		} else {
			once := run.encode()
			again, err := decode[Run]("record", once)
			require.NoError(t, err)
			require.Equal(t, string(once), string(again.encode()))
			require.LessOrEqual(t, len(again.Output), MaxOutput)
			require.LessOrEqual(t, len(again.Attempts), MaxAttempts)
		}
		if status, err := decode[JobStatus]("status", data); err != nil {
			require.ErrorIs(t, err, ErrBadRecord)
		} else {
			once := status.encode()
			again, err := decode[JobStatus]("status", once)
			require.NoError(t, err)
			require.Equal(t, string(once), string(again.encode()))
		}
		if r, err := DecodeRequest(&mvccpb.KeyValue{Key: []byte("k"), Value: data}); err == nil {
			_ = r.check()
		}
	})
}

// Whatever is a job's name and a run's id: the keys of different jobs and runs are different, and say whose they are.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][3]string{
		{"a", "20261130T010000Z", "b"},
		{"job1", "20261130T010000Z-m4f7a", "job10"},
		{"a", "../x", "a"},
		{"a/b", "", "a"},
		{strings.Repeat("n", MaxJobName+1), "20261130T250000Z", "."},
		{"a.b", "20261130T010000Z-", "a-b"},
		{"\xff", "\x00", "ä"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	keys, err := NewKeys("", "")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, job, run, other string) {
		if at, err := RunIDTime(run); err == nil {
			require.True(t, strings.HasPrefix(run, RunID(at)))
		}
		if k, err := NewKeys(job, other); err == nil {
			require.Regexp(t, "^(/[A-Za-z0-9][A-Za-z0-9._-]*)+/$", k.Root())
		}
		if CheckJobName(job) != nil {
			return
		}
		require.Equal(t, job, keys.JobOfStatus(keys.Status(job)))
		require.Equal(t, job, keys.JobOfControl(keys.Control(job)))
		require.Equal(t, job, keys.JobOfLock(keys.Lock(job)))
		require.Equal(t, job, keys.JobOfLock(keys.SharedLock(job, run)))
		require.Equal(t, job+"/"+run, keys.CanceledAt(keys.Cancel(job, run)))
		if CheckJobName(other) == nil && other != job {
			require.False(t, strings.HasPrefix(keys.Run(job, run), keys.Runs(other)))
			require.NotEqual(t, keys.Lock(job), keys.SharedLock(other, run))
			require.NotEqual(t, keys.Checkpoint(job, run), keys.Checkpoint(other, run))
		}
	})
}
