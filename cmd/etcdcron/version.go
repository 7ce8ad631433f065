package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by -ldflags "-X main.version=v1.2.3"; without, the module's version counts.
var version = "dev"

func newVersionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Args:  exactly(0, ""),
		RunE: func(*cobra.Command, []string) error {
			b := currentBuild()
			return one(o, b, func() error {
				_, err := fmt.Fprintln(o.stdout, b)
				return err
			})
		},
	}
}

// build is what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the repository; + when it had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (b build) String() string {
	s := "etcdcron " + b.Version
	if b.Revision != "" {
		s += " (" + b.Revision + ")"
	}
	return s + ", " + b.Go + ", " + b.Platform
}

func currentBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; b.Version == "dev" && v != "" && v != "(devel)" {
		b.Version = v
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	if b.Revision != "" {
		b.Revision += dirty
	}
	return b
}
