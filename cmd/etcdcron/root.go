package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdcron/etcdcron/internal/app"
	"github.com/etcdcron/etcdcron/internal/term"
	"github.com/etcdcron/etcdcron/state"
)

// surroundings is what a command has around it; tests have their own.
type surroundings struct {
	stdin          io.Reader // nil is nothing
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
}

// options are the flags that every command has.
type options struct {
	surroundings

	endpoints                               []string
	cacert, cert, key, user, passwordFile   string
	dialTimeout, commandTimeout             time.Duration
	prefix, namespace                       string
	output, logLevel, logFormat, timeFormat choice

	flags *pflag.FlagSet
	log   *logSink // what the loggers write to; nil before the first
}

// The forms of -o.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asJSONL = "jsonl"
)

// helpWidth is how many columns a line of help may take.
const helpWidth = 80

func newRootCommand(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   "etcdcron",
		Short: "A highly available cron scheduler on etcd",
		Long: `etcdcron runs scheduled jobs in a cluster of instances that share an etcd:
each scheduled time once, by one leader, and every run on record.

Exit codes: 0 ok, 1 failed, 2 no connection, 3 bad input, 4 not found,
5 the job's run did not succeed, 128 usage.`,
		Example: `  etcdcron serve -c jobs.yaml     start an instance, with an etcd of its own
  etcdcron jobs                   what there is, what runs, what is next
  etcdcron top                    the same, live
  etcdcron history JOB            what ran, newest first
  etcdcron trigger JOB --follow   run it now, and show how it ends
  etcdcron next "0 9 * * *"       when a schedule fires`,
		Version:           currentBuild().String(),
		SilenceErrors:     true, // report does it
		SilenceUsage:      true,
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags(), o.getenv) },
	}
	root.SetOut(o.stdout)
	root.SetErr(o.stderr)
	root.SetFlagErrorFunc(badFlag)
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "show the version") // cobra's own takes -v, which is for verbose
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	o.addFlags(root.PersistentFlags())
	o.completeFlags(root)
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"run", "Run an instance:", []*cobra.Command{newServeCommand(o), newValidateCommand(o), newHealthcheckCommand(o)}},
		{"look", "Look:", []*cobra.Command{
			newJobsCommand(o), newDescribeCommand(o), newHistoryCommand(o), newRunCommand(o), newLogsCommand(o), newNextCommand(o),
			newTopCommand(o), newLeaderCommand(o), newInstancesCommand(o), newDoctorCommand(o),
		}},
		{"steer", "Steer:", []*cobra.Command{
			newTriggerCommand(o), newCancelCommand(o), newRetryCommand(o), newBackfillCommand(o), newPauseCommand(o), newResumeCommand(o),
			newResignCommand(o),
		}},
		{"inside", "Inside a command that a run runs:", []*cobra.Command{newProgressCommand(o), newCheckpointCommand(o)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newVersionCommand(o))
	return root
}

func (o *options) addFlags(f *pflag.FlagSet) {
	o.flags = f
	f.StringSliceVar(&o.endpoints, "endpoints", []string{app.DefaultEtcdListen}, "etcd `addresses`, separated by commas (default "+app.DefaultEtcdListen+
		"; serve without them runs an etcd of its own)")
	f.Lookup("endpoints").DefValue = "[]" // that serve has another default pflag cannot say
	f.StringVar(&o.cacert, "cacert", "", "`file` with the certificates that etcd's is verified by")
	f.StringVar(&o.cert, "cert", "", "`file` with our certificate for etcd")
	f.StringVar(&o.key, "key", "", "`file` with the key of that certificate")
	f.StringVar(&o.user, "user", "", "etcd `user`, or user:password")
	f.StringVar(&o.passwordFile, "password-file", "", "`file` with the etcd user's password")
	f.DurationVar(&o.dialTimeout, "dial-timeout", 2*time.Second, "how long to try to reach etcd")
	f.DurationVar(&o.commandTimeout, "command-timeout", 5*time.Second, "time limit of each request to etcd")
	for _, name := range []string{"endpoints", "cacert", "cert", "key", "user", "dial-timeout", "command-timeout"} {
		bindEnvironment(f, name, "ETCDCRON_", "ETCDCTL_")
	}
	bindEnvironment(f, "password-file", "ETCDCRON_")

	f.StringVar(&o.prefix, "prefix", state.DefaultPrefix, "where in etcd everything is kept")
	f.StringVar(&o.namespace, "namespace", state.DefaultNamespace, "which set of jobs under the prefix")
	o.output = choice{value: asTable, allowed: []string{asTable, asWide, asJSON, asJSONL}}
	f.VarP(&o.output, "output", "o", "table, wide, json or jsonl")
	o.timeFormat = choice{value: asRelative, allowed: []string{asRelative, asRFC3339, asLocal, asUnix}}
	f.Var(&o.timeFormat, "time-format", "relative, rfc3339, local or unix: how tables show instants")
	o.logLevel = choice{value: "info", allowed: []string{"debug", "info", "warn", "error"}}
	f.Var(&o.logLevel, "log-level", "debug, info, warn or error")
	o.logFormat = choice{value: "console", allowed: []string{"console", "json"}}
	f.Var(&o.logFormat, "log-format", "console or json")
	for _, name := range []string{"prefix", "namespace", "time-format", "log-level", "log-format"} {
		bindEnvironment(f, name, "ETCDCRON_")
	}
}

// clientConfig is how to reach etcd.
func (o *options) clientConfig() app.ClientConfig {
	return app.ClientConfig{
		Endpoints: o.endpoints,
		CACert:    o.cacert, Cert: o.cert, Key: o.key, User: o.user, PasswordFile: o.passwordFile,
		DialTimeout: o.dialTimeout, CommandTimeout: o.commandTimeout,
		Logger: o.logger(),
	}
}

// endpointsGiven reports whether a flag or a variable names an etcd; otherwise it is the default.
func (o *options) endpointsGiven() bool { return o.flags.Changed("endpoints") }

// keys are the keys of the namespace.
func (o *options) keys() (state.Keys, error) {
	keys, err := state.NewKeys(o.prefix, o.namespace)
	if err != nil {
		return state.Keys{}, &failure{code: exitBadInput, err: err}
	}
	return keys, nil
}

// logger writes to stderr: stdout is for data.
func (o *options) logger() *zap.Logger {
	level, err := zapcore.ParseLevel(o.logLevel.value)
	if err != nil {
		level = zapcore.InfoLevel // cannot be: the flag takes none other
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(config)
	if o.logFormat.value == "console" {
		config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		if o.screen(o.stderr).Color {
			config.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		config.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(config)
	}
	if o.log == nil {
		o.log = newLogSink(o.stderr)
	}
	return zap.New(zapcore.NewCore(encoder, o.log, level))
}

func (o *options) screen(w io.Writer) term.Screen { return term.ScreenOf(w, o.getenv) }

// choice is a flag that takes one of a few words.
type choice struct {
	value   string
	allowed []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }

func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return errNotAllowed(c.allowed)
	}
	c.value = value
	return nil
}
