package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/etcdcron/etcdcron/internal/httpapi"
)

// checkListen says why nothing may listen on addr, the value of flag. What asks nobody who he is, is for this machine,
// unless somebody says otherwise; advice is what else there is to do.
func checkListen(flag, addr, example string, open bool, advice string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return badInput("%s %q is not host:port; try %s", flag, addr, example)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return badInput("%s %q: %q is not a port; try %s", flag, addr, port, example)
	}
	ip := net.ParseIP(host)
	switch {
	case host != "" && host != "localhost" && ip == nil:
		return badInput("%s %q: give an IP address or localhost to listen on, such as %s", flag, addr, example)
	case !open && !isLoopback(host):
		return badInput("%s %q would be open to other machines, without authentication; use %s, %sor add --insecure if the network is trusted",
			flag, addr, net.JoinHostPort("127.0.0.1", port), advice)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// listenError says why what listens on addr could not, and who is there already.
func listenError(what, flag, addr string, err error) error {
	_, port, _ := net.SplitHostPort(addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		taken := occupant(addr)
		taken.fact = fmt.Sprintf("%s cannot listen on %s: %s", what, addr, taken.fact)
		taken.advice += ", or choose another address with " + flag
		return taken
	case errors.Is(err, syscall.EACCES):
		return badInput("%s cannot listen on %s: this user may not use port %s; choose one above 1023 with %s", what, addr, port, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return badInput("%s cannot listen on %s: this machine does not have that address; choose another with %s", what, addr, flag)
	default:
		return badInput("%s cannot listen on %s: %w; choose another address with %s", what, addr, err, flag)
	}
}

// occupant is who listens on addr, and what to do about it.
func occupant(addr string) *takenError {
	_, port, _ := net.SplitHostPort(addr)
	if version, at := etcdAt(addr); version != "" {
		return &takenError{
			fact:   "an etcd " + version + " uses the port (it may be another etcdcron's)",
			advice: "join it with --endpoints " + at, ours: true, etcd: at,
		}
	}
	var health httpapi.Readiness
	if askOccupant(local(addr), "/readyz", &health) && health.Status != "" {
		return &takenError{
			fact:   "another etcdcron uses the port (" + cmp.Or(health.Instance, "starting") + ")",
			advice: "stop it", ours: true,
		}
	}
	return &takenError{
		fact:   "another program uses the port (see which: ss -ltnp sport = :" + port + ")",
		advice: "stop it",
	}
}

// etcdAt is the version of the etcd that listens on addr, "" for none, and where to find it.
func etcdAt(addr string) (version, at string) {
	var answer struct {
		Etcd string `json:"etcdserver"`
	}
	at = local(addr)
	if !askOccupant(at, "/version", &answer) {
		return "", at
	}
	return answer.Etcd, at
}

// local is addr as a client on this machine can dial it.
func local(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil && isUnspecified(addr) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

func isUnspecified(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// askOccupant gets JSON from whoever listens on addr, if it is willing.
func askOccupant(addr, path string, into any) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true} // no proxy, nothing left behind
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	return err == nil && strings.HasPrefix(string(body), "{") && json.Unmarshal(body, into) == nil
}
