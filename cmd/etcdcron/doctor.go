package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etcdcron/etcdcron/internal/doctor"
	"github.com/etcdcron/etcdcron/internal/term"
)

func newDoctorCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do about it",
		Long: `Look for what is wrong, and say what to do about it: etcd (each endpoint,
its version, how full and how fast it is, its alarms), permissions, who
leads and who takes part, the instances' clocks, keys without a lease, jobs
that are invalid, overdue or fail, runs that nobody keeps, and requests that
nobody acts on. It reads, but for one key that it writes and deletes again.

Exit codes: 0 no problem, 1 a problem, 2 no connection.`,
		Example: `  etcdcron doctor
  etcdcron doctor -o json | jq -r '.[] | select(.level != "ok") | .message'`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.connected(cmd.Context(), func(ctx context.Context, c *cluster) error { return c.doctor(ctx) })
		},
	}
}

func (c *cluster) doctor(ctx context.Context) error {
	findings := doctor.Examine(ctx, doctor.Config{
		Client: c.client, Store: c.store, Root: c.keys.Root(), Timeout: c.o.commandTimeout, Now: c.o.now,
	})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	counts := map[doctor.Level]int{}
	for i := range findings {
		counts[findings[i].Level]++
	}
	var err error
	if c.o.forPeople() {
		err = c.o.findingsText(findings)
	} else {
		err = list(c.o, findings, nil)
	}
	switch problems, warnings := counts[doctor.Problem], counts[doctor.Warning]; {
	case err != nil:
		return err
	case problems > 0:
		return &failure{err: fmt.Errorf("%s and %s", count(problems, "problem"), count(warnings, "warning")), code: exitFailed, try: "what stands under each above"}
	case warnings > 0:
		c.o.hintf("no problem, and %s", count(warnings, "warning"))
	default:
		c.o.hintf("no problem")
	}
	return nil
}

var levelStyles = map[doctor.Level]term.Style{doctor.OK: term.Good, doctor.Warning: term.Caution, doctor.Problem: term.Bad}

// findingsText is a paragraph for each finding, broken to fit the screen.
func (o *options) findingsText(findings []doctor.Finding) error {
	screen := o.screen(o.stdout)
	const before = 9 + 13 // the level and what was looked at
	room := 0
	if screen.Width > 0 {
		room = max(screen.Width-before, 20)
	}
	var b bytes.Buffer
	for i := range findings {
		f := &findings[i]
		level, check := fmt.Sprintf("%-9s", f.Level), fmt.Sprintf("%-13s", f.Check)
		for _, line := range term.Wrap(term.Clean(f.Message), room) {
			fmt.Fprintf(&b, "%s%s%s\n", screen.Paint(levelStyles[f.Level], level), check, line)
			level, check = fmt.Sprintf("%-9s", ""), fmt.Sprintf("%-13s", "")
		}
		if f.Hint == "" {
			continue
		}
		for _, line := range term.Wrap("try: "+term.Clean(f.Hint), room) {
			fmt.Fprintf(&b, "%*s%s\n", before, "", screen.Paint(term.Faint, line))
		}
	}
	_, err := o.stdout.Write(b.Bytes())
	return err
}
