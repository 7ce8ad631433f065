package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
)

// Health knows how an instance does.
type Health interface {
	// Ready says whether the instance can do its work. It must answer within about a second, whatever
	// etcd does, and must be cheap: probes come often.
	Ready(ctx context.Context) Readiness
}

// Readiness is the answer to /readyz.
type Readiness struct {
	Status   string `json:"status"` // StatusReady or StatusNotReady; set by the handler
	Instance string `json:"instance,omitempty"`
	Role     string `json:"role,omitempty"`   // RoleLeader or RoleFollower, once it takes part
	Leader   string `json:"leader,omitempty"` // the instance that leads, if one does
	Reason   string `json:"reason,omitempty"` // why it is not ready; "" when it is
	Hint     string `json:"hint,omitempty"`   // what to do about it
}

// The words of a Readiness.
const (
	StatusReady    = "ready"
	StatusNotReady = "not_ready"
	RoleLeader     = "leader"
	RoleFollower   = "follower"
)

func live(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{"status": "alive"})
}

func ready(h Health) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, code := h.Ready(r.Context()), http.StatusOK
		answer.Status = StatusReady
		if answer.Reason != "" {
			answer.Status, code = StatusNotReady, http.StatusServiceUnavailable
		}
		reply(w, code, answer)
	}
}

// reply writes v, which must be fit for JSON. An answer is of its moment, so nobody may keep it.
func reply(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // an error is of a client that has gone
}
