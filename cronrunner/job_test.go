package cronrunner

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/state"
)

func TestJobDefaults(t *testing.T) {
	j := mustCompile(t, Job{Schedule: "@daily"})
	require.Equal(t, Overlap{Policy: Skip}, j.Overlap)
	require.Equal(t, Overlap{Policy: Queue, Limit: 20}, mustCompile(t, Job{Schedule: "@daily", Overlap: Overlap{Policy: Queue}}).Overlap)
	require.ErrorContains(t, Job{Name: "j", Schedule: "@daily", Overlap: Overlap{Limit: 3}}.Check(), "overlap.limit")
	require.ErrorContains(t, Job{Name: "j", Schedule: "@daily", Overlap: Overlap{Policy: Queue, Limit: 1001}}.Check(), "overlap.limit")
	require.Equal(t, CatchUp{Policy: Latest, Window: 24 * time.Hour}, j.CatchUp)
	require.Equal(t, Recovery{Policy: Resume, Max: 3}, j.Recovery)
	require.Equal(t, time.Hour, j.Timeout)
	require.Equal(t, 15*time.Second, j.LockTTL)
	require.Equal(t, 3750*time.Millisecond, j.Grace)

	require.Equal(t, MaxGrace, mustCompile(t, Job{Schedule: "@daily", LockTTL: time.Minute}).Grace)
	require.NoError(t, Job{Name: "j", Schedule: "@daily", LockTTL: MinLockTTL}.Check(), "the defaults of the shortest lock fit")
	require.NoError(t, Job{Name: "j", Schedule: "@daily", LockTTL: 5 * time.Second}.Check())
}

func TestJobCheckNamesEveryFault(t *testing.T) {
	err := Job{
		Name: "a/b", Schedule: "*/90 * * * *", Overlap: Overlap{Policy: "sometimes"}, CatchUp: CatchUp{Policy: "maybe", Window: time.Millisecond},
		Recovery: Recovery{Policy: "hope", Max: -1}, Timeout: -time.Second, LockTTL: time.Second, TimeZone: "EST",
		Description: strings.Repeat("x", MaxText+1), Labels: map[string]string{"a": strings.Repeat("x", MaxText)},
	}.Check()
	require.ErrorIs(t, err, ErrBadJob)
	for _, field := range []string{
		"name: ", "schedule: ", "overlap: ", "catch_up: ", "catch_up.window: ", "recovery: ", "max_recoveries: ", "timeout: ", "lock_ttl: ",
		"time_zone: ", "description: it has 4097 bytes", "labels: ",
	} {
		require.ErrorContains(t, err, field)
	}
}

func TestJobLockMustOutlastTheGrace(t *testing.T) {
	err := Job{Name: "j", Schedule: "@daily", LockTTL: 5 * time.Second, Grace: 3 * time.Second}.Check()
	require.ErrorContains(t, err, "lock_ttl: 5s is too short for a grace of 3s")
	require.ErrorContains(t, err, "use a lock_ttl of at least 10s, or a grace of at most 1.416s")
	require.NoError(t, Job{Name: "j", Schedule: "@daily", LockTTL: 10 * time.Second, Grace: 3 * time.Second}.Check())
	require.NoError(t, Job{Name: "j", Schedule: "@daily", LockTTL: 5 * time.Second, Grace: 1416 * time.Millisecond}.Check())
	require.ErrorContains(t, Job{Name: "j", Schedule: "@daily", LockTTL: 5500 * time.Millisecond}.Check(), "whole seconds")
}

// idleClient never reaches anything.
func idleClient() *clientv3.Client { return clientv3.NewCtxClient(context.Background()) }

func TestRegister(t *testing.T) {
	s, err := New(idleClient(), Config{})
	require.NoError(t, err)
	work := func(context.Context, *Run) error { return nil }
	require.NoError(t, s.Register(Job{Name: "a", Schedule: "@daily", Handler: work}))
	require.ErrorIs(t, s.Register(Job{Name: "a", Schedule: "@daily", Handler: work}), ErrDuplicate)
	require.ErrorIs(t, s.Register(Job{Name: "a/b", Schedule: "@daily", Handler: work}), state.ErrBadName)
	require.ErrorContains(t, s.Register(Job{Name: "b", Schedule: "@daily"}), "handler: is required")
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(nil, Config{})
	require.ErrorContains(t, err, "client is nil")
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{Namespace: "a/b"}, "namespace"},
		{Config{Prefix: "//"}, "prefix"},
		{Config{InstanceID: "a b"}, "instance id"},
		{Config{LeaderTTL: time.Second}, "too short"},
		{Config{MaxConcurrent: -1}, "negative"},
	} {
		_, err := New(idleClient(), tc.cfg)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestInstanceIDsAreUniqueToTheProcessStart(t *testing.T) {
	a, err := New(idleClient(), Config{InstanceID: "same"})
	require.NoError(t, err)
	b, err := New(idleClient(), Config{InstanceID: "same"})
	require.NoError(t, err)
	require.NotEqual(t, a.ID(), b.ID())
}
