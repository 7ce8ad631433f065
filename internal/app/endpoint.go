package app

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// checkEndpoints says what is wrong with endpoints. The client itself would take anything, and try to
// connect to it for ever.
func checkEndpoints(endpoints []string, withTLS bool) error {
	if len(endpoints) == 0 {
		return badInput("no etcd endpoint is given; use --endpoints, for example --endpoints 127.0.0.1:2379")
	}
	secure := isSecure(endpoints[0])
	for _, ep := range endpoints {
		if err := checkEndpoint(ep); err != nil {
			return err
		}
		switch {
		case isSecure(ep) != secure:
			return badInput("endpoints %s: some use TLS and some do not; use https:// for all, or for none", strings.Join(endpoints, ","))
		case withTLS && isPlain(ep):
			return badInput("endpoint %q would be used without TLS, though --cacert or --cert is given; use https://", ep)
		}
	}
	return nil
}

func isSecure(ep string) bool {
	return strings.HasPrefix(ep, "https:") || strings.HasPrefix(ep, "unixs:")
}

func isPlain(ep string) bool { return strings.HasPrefix(ep, "http:") }

func checkEndpoint(ep string) error {
	scheme, rest, ok := strings.Cut(ep, ":")
	if ok && (scheme == "unix" || scheme == "unixs") {
		if strings.Trim(rest, "/") == "" {
			return badInput("endpoint %q has no path; use, for example, unix:///run/etcd.sock", ep)
		}
		return nil
	}
	host := ep
	if strings.Contains(ep, "://") {
		u, err := url.Parse(ep)
		switch {
		case err != nil:
			return badInput("endpoint %q is not an address: %w", ep, err)
		case u.Scheme != "http" && u.Scheme != "https":
			return badInput("endpoint %q: %q is not a scheme of etcd's; use http://, https:// or unix://", ep, u.Scheme+"://")
		case u.User != nil:
			return badInput("an endpoint holds a user; use --user and --password-file") // and does not get printed
		case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return badInput("endpoint %q: nothing may follow the port", ep)
		}
		host = u.Host
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" {
		return badInput("endpoint %q is not host:port; try %q", ep, suggestEndpoint(ep, host))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return badInput("endpoint %q: %q is not a port", ep, port)
	}
	return nil
}

// suggestEndpoint is ep with what it most likely lacks.
func suggestEndpoint(ep, host string) string {
	name := strings.Trim(strings.TrimSuffix(host, ":"), "[]")
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "" || strings.ContainsAny(name, " \t,") {
		return "127.0.0.1:2379"
	}
	prefix, _, ok := strings.Cut(ep, "://")
	if ok {
		return prefix + "://" + net.JoinHostPort(name, "2379")
	}
	return net.JoinHostPort(name, "2379")
}
