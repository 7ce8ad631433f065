package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/leader"
)

const (
	memberTimeout = 2 * time.Second // for what one endpoint says of itself
	maxMembers    = 9               // endpoints that are asked
)

// clusterView is who takes part, and how etcd does.
type clusterView struct {
	Leader    *leaderView // nil when nobody leads
	Instances []instanceRow
	Members   []memberRow
	Alarms    []string
	MayAsk    bool
}

type leaderView struct {
	Instance, Host, Version, Address string
	Since                            moment
	Term                             string
}

type instanceRow struct {
	ID, Host, Version, Address string
	PID                        int
	Started                    moment
	Leads                      bool
}

type memberRow struct {
	Endpoint, Version, Size, Latency, State string
	Leads, Wrong                            bool
}

func clusterPage(ctx context.Context, v *visit) (content, error) {
	c := content{template: "cluster", title: v.lang.say("cluster.title"), events: "/v1/events"}
	view := clusterView{MayAsk: v.who.MayAsk}
	info, err := leader.Current(ctx, v.client, v.store.Keys())
	switch {
	case err == nil:
		view.Leader = &leaderView{
			Instance: info.Instance, Host: info.Host, Version: info.Version, Address: info.Address,
			Since: v.lang.moment(info.ElectedAt, v.now), Term: number(info.Term),
		}
	case !errors.Is(err, leader.ErrNoLeader):
		return c, err
	}
	present, err := v.store.Instances(ctx)
	if err != nil {
		return c, err
	}
	for _, inst := range present {
		view.Instances = append(view.Instances, instanceRow{
			ID: inst.ID, Host: inst.Host, PID: inst.PID, Version: inst.Version, Address: inst.Address,
			Started: v.lang.moment(inst.StartedAt, v.now), Leads: info.Instance != "" && inst.ID == info.Instance,
		})
	}
	view.Members, view.Alarms = v.members(ctx)
	c.data = &view
	return c, nil
}

// members asks each endpoint how it does, all at once. One that does not answer is a row, and no error.
func (v *visit) members(ctx context.Context) (rows []memberRow, alarms []string) {
	ctx, stop := context.WithTimeout(ctx, memberTimeout)
	defer stop()
	endpoints := v.client.Endpoints()
	endpoints = endpoints[:min(len(endpoints), maxMembers)]
	rows = make([]memberRow, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			began := time.Now()
			s, err := v.client.Status(ctx, endpoint)
			rows[i] = v.lang.member(endpoint, s, time.Since(began), err)
		})
	}
	asking.Go(func() {
		if resp, err := v.client.AlarmList(ctx); err == nil {
			for _, a := range resp.Alarms {
				alarms = append(alarms, a.Alarm.String())
			}
		}
	})
	asking.Wait()
	slices.Sort(alarms)
	return rows, slices.Compact(alarms)
}

func (l language) member(endpoint string, s *clientv3.StatusResponse, took time.Duration, err error) memberRow {
	row := memberRow{Endpoint: endpoint}
	if err != nil {
		row.State, row.Wrong = l.say("cluster.etcd_silent"), true
		return row
	}
	row.Version, row.Latency = s.Version, l.elapsed(took)
	row.Size = l.say("cluster.in_use", bytesText(s.DbSize), bytesText(s.DbSizeInUse))
	switch {
	case len(s.Errors) > 0:
		row.State, row.Wrong = l.say("cluster.etcd_error", strings.Join(s.Errors, ", ")), true
	case s.Header.GetMemberId() == s.Leader:
		row.State, row.Leads = l.say("cluster.etcd_leader"), true
	case s.IsLearner:
		row.State = l.say("cluster.etcd_learner")
	default:
		row.State = l.say("cluster.etcd_follower")
	}
	return row
}
