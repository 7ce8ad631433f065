package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/leader"
)

func newServeCommand(o *options) *cobra.Command {
	var cfg app.ServeConfig
	cmd := &cobra.Command{
		Use:   "serve -c FILE",
		Short: "Run an instance: campaign, schedule while leading, run what is due",
		Long: `serve runs an instance until it gets SIGINT, SIGTERM or SIGHUP. Then it
hands leadership over at once, lets running jobs finish within
--drain-timeout, and ends with exit code 0. A second SIGINT or SIGTERM stops
the jobs that run, and records that; a third ends the process. The jobs file
is read once, at the start: restart to have a change count.

With --endpoints it joins whoever uses that etcd with the same prefix and
namespace, and waits for it for as long as it takes. Without, it runs an
etcd of its own, with its data in --data-dir, that etcdctl and every other
subcommand find without a flag.

Over HTTP it answers /livez, /readyz (also as a follower), /metrics, and the
API under /v1. On loopback it asks nobody who he is. Anywhere else it needs
--token-file, --read-token-file or --tls-client-ca, unless --insecure says
that the network is trusted. Tokens may also be in the variables
ETCDCRON_TOKEN and ETCDCRON_READ_TOKEN. Its own etcd asks nobody, so only
--insecure opens it to other machines.

Exit codes: 0 drained, 1 a part has failed, 3 bad input: a flag, the jobs
file, a port or a data directory in use, 128 usage.`,
		Example: `  etcdcron serve -c jobs.yaml                    with an etcd of its own
  etcdcron serve -c jobs.yaml --endpoints etcd-0:2379,etcd-1:2379
  etcdcron serve -c jobs.yaml --endpoints 127.0.0.1:2379 --listen 127.0.0.1:0
                                                 one more beside the first`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.ConfigFile == "" {
				return &failure{
					code: exitUsage, err: errors.New("etcdcron serve needs a jobs file"),
					try: "etcdcron serve -c FILE; etcdcron serve --help says more",
				}
			}
			if cfg.MaxConcurrent < 1 {
				return usage(cmd, "--max-concurrent %d: use 1 or more", cfg.MaxConcurrent)
			}
			cfg.HTTP.Token.Value, cfg.HTTP.ReadToken.Value = o.getenv("ETCDCRON_TOKEN"), o.getenv("ETCDCRON_READ_TOKEN")
			cfg.Embed = !o.endpointsGiven()
			cfg.Client = o.clientConfig()
			cfg.Logger = cfg.Client.Logger
			cfg.JSONLog = o.logFormat.value == "json"
			cfg.Prefix, cfg.Namespace = o.prefix, o.namespace
			cfg.Version = currentBuild().Version
			if cfg.DrainTimeout == 0 {
				cfg.DrainTimeout = -1 // no drain; the zero value would be the default
			}
			ctx, hurry, stop := untilSignal(cmd.Context())
			defer stop()
			cfg.Hurry = hurry
			return app.Serve(ctx, cfg)
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		o.flags.Lookup("output").Hidden = true // it prints nothing
		cmd.Parent().HelpFunc()(cmd, args)
	})
	f := cmd.Flags()
	f.StringVarP(&cfg.ConfigFile, "config", "c", "", "jobs `file`, read at the start")
	f.StringVar(&cfg.DataDir, "data-dir", app.DefaultDataDir, "`directory` for the data of an etcd of its own")
	f.StringVar(&cfg.EtcdListen, "etcd-listen", app.DefaultEtcdListen, "`address` for the clients of an etcd of its own")
	f.StringVar(&cfg.Listen, "listen", app.DefaultListen, "`address` for HTTP")
	f.BoolVar(&cfg.Insecure, "insecure", false, "allow --listen and --etcd-listen to be open to other machines")
	f.StringVar(&cfg.HTTP.Token.File, "token-file", "", "`file` with the token that allows everything over HTTP")
	f.StringVar(&cfg.HTTP.ReadToken.File, "read-token-file", "", "`file` with the token that allows reading over HTTP")
	f.StringVar(&cfg.HTTP.Cert, "tls-cert", "", "`file` with the certificate for HTTP, read again when it changes")
	f.StringVar(&cfg.HTTP.Key, "tls-key", "", "`file` with its key")
	f.StringVar(&cfg.HTTP.ClientCA, "tls-client-ca", "", "`file` with certificates; clients with one that they have signed may do everything over HTTP")
	f.StringSliceVar(&cfg.HTTP.Hosts, "http-host", nil, "`names` that HTTP is asked by on loopback, beside localhost, separated by commas")
	f.StringVar(&cfg.InstanceID, "instance-id", "", "`name` of this instance; a random suffix is added (default host and process id)")
	f.DurationVar(&cfg.LeaderTTL, "leader-ttl", leader.DefaultTTL, "how long a crashed leader is waited for, whole seconds from 2s")
	f.DurationVar(&cfg.DrainTimeout, "drain-timeout", cronrunner.DefaultDrainTimeout, "how long running jobs may go on when told to stop")
	f.IntVar(&cfg.MaxConcurrent, "max-concurrent", cronrunner.DefaultMaxConcurrent, "how many attempts run at once here; the others wait")
	for _, name := range []string{
		"config", "data-dir", "etcd-listen", "listen", "insecure", "token-file", "read-token-file", "tls-cert", "tls-key", "tls-client-ca",
		"http-host", "instance-id", "leader-ttl", "drain-timeout", "max-concurrent",
	} {
		bindEnvironment(f, name, "ETCDCRON_")
	}
	return cmd
}
