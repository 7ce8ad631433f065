package state

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// NewLessor is a Lessor on a client.
func NewLessor(client *clientv3.Client) Lessor {
	return lessor{Lease: client.Lease, raw: clientv3.RetryLeaseClient(client)}
}

type lessor struct {
	clientv3.Lease
	raw etcdserverpb.LeaseClient
}

// KeepAliveOnce renews with one request. The client's own method of that name sends again at once, with
// no pause, for as long as etcd cannot be reached: it keeps a core busy, and the caller cannot tell when
// the request that was answered was sent.
func (l lessor) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel() // ends the stream
	stream, err := l.raw.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, rpctypes.Error(err)
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		return nil, rpctypes.Error(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		return nil, rpctypes.Error(err)
	}
	return &clientv3.LeaseKeepAliveResponse{ResponseHeader: resp.GetHeader(), ID: id, TTL: resp.GetTTL()}, nil
}

func leaseName(id clientv3.LeaseID) string { return fmt.Sprintf("%x", int64(id)) }
