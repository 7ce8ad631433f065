package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckListen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		addr     string
		insecure bool
		want     string
	}{
		{addr: "127.0.0.1:2390"},
		{addr: "127.8.8.8:0"},
		{addr: "localhost:2390"},
		{addr: "[::1]:2390"},
		{addr: "0.0.0.0:2390", want: "would be open to other machines, without authentication; use 127.0.0.1:2390, or add --insecure"},
		{addr: ":2390", want: "use 127.0.0.1:2390"},
		{addr: "[::]:2390", want: "would be open"},
		{addr: "192.0.2.1:2390", want: "would be open"},
		{addr: "0.0.0.0:2390", insecure: true},
		{addr: ":2390", insecure: true},
		{addr: "2390", want: "is not host:port; try 127.0.0.1:2390"},
		{addr: "localhost", want: "is not host:port"},
		{addr: "127.0.0.1:http", want: `"http" is not a port`},
		{addr: "127.0.0.1:65536", want: `"65536" is not a port`},
		{addr: "localhost.evil.example:1", insecure: true, want: "give an IP address or localhost"},
	} {
		t.Run(tc.addr, func(t *testing.T) {
			t.Parallel()
			err := checkListen("--listen", tc.addr, DefaultListen, tc.insecure, "")
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrBadInput)
			require.ErrorContains(t, err, "--listen \""+tc.addr+"\"")
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"0.0.0.0:7": "127.0.0.1:7", "[::]:7": "127.0.0.1:7", ":7": "127.0.0.1:7", "127.0.0.2:7": "127.0.0.2:7", "[::1]:7": "[::1]:7",
	} {
		require.Equal(t, want, local(addr))
	}
}
