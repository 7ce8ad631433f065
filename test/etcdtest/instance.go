package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// instance is one life of a member: from the start of its etcd to the end of it.
//
// embed alone takes its time to stop. It waits for open streams, and a watch or a lease's keepalive is
// open for ever, so it waits 5 s and more; it hands the leadership to a member that may be stopping
// too, and waits as long again; and it blocks for good when the server never became ready. Hence retire
// and end do these steps themselves, in a bounded way, before they let embed close what is left.
type instance struct {
	etcd *embed.Etcd

	mu       sync.Mutex
	rpc      *grpc.Server // nil until the server is ready
	stopping bool
}

func startInstance(cfg *embed.Config) (*instance, error) {
	in := &instance{}
	register := cfg.ServiceRegister
	cfg.ServiceRegister = func(rpc *grpc.Server) {
		if register != nil {
			register(rpc)
		}
		in.serving(rpc)
	}
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	in.etcd = etcd
	return in, nil
}

// serving is how embed shows its gRPC server, just before it serves.
func (in *instance) serving(rpc *grpc.Server) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rpc = rpc
	if in.stopping {
		rpc.Stop()
	}
}

// waitReady waits until the member has written to the cluster, which takes a quorum.
func (in *instance) waitReady(ctx context.Context) error {
	select {
	case <-in.etcd.Server.ReadyNotify():
		return nil
	case <-in.etcd.Server.StopNotify():
		return errors.New("etcd stopped by itself")
	case err := <-in.etcd.Err():
		return fmt.Errorf("etcd cannot serve: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (in *instance) ready() bool {
	select {
	case <-in.etcd.Server.ReadyNotify():
		return true
	default:
		return false
	}
}

func (in *instance) id() types.ID { return in.etcd.Server.MemberID() }

// leads says whether the member believes to lead. Of two that do, the one with the higher term is right.
func (in *instance) leads() (bool, uint64) {
	return in.etcd.Server.Leader() == in.id(), in.etcd.Server.Term()
}

func (in *instance) moveLeader(to *instance, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return in.etcd.Server.MoveLeader(ctx, uint64(in.id()), uint64(to.id()))
}

// retire ends the service to clients. Requests under way get the time drain to end; a leader hands
// over to heir, if there is one.
func (in *instance) retire(drain time.Duration, heir *instance) {
	in.stopRPC(drain)
	if leads, _ := in.leads(); leads && heir != nil {
		// A hand-over that fails leaves it to the others to elect a leader, as after a crash.
		_ = in.moveLeader(heir, handoverTimeout)
	}
}

// end comes after retire.
func (in *instance) end() {
	in.etcd.Server.HardStop()
	in.etcd.Close()
}

func (in *instance) stopRPC(drain time.Duration) {
	in.mu.Lock()
	in.stopping = true
	rpc := in.rpc
	in.mu.Unlock()
	if rpc == nil {
		return
	}
	if drain > 0 {
		defer time.AfterFunc(drain, rpc.Stop).Stop()
	} else {
		rpc.Stop()
	}
	rpc.GracefulStop() // also after Stop: it waits for the handlers, which use the store that is closed next
}
