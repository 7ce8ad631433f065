package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measureLimit is what a measurement may take beside the time that is measured: 100,000 jobs have to be defined.
const measureLimit = 4 * time.Minute

// measureAll makes all measurements, one after the other, and reports.
func measureAll(ctx context.Context, cfg config, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)

	r := report{Seconds: cfg.seconds, Flags: strings.Join(os.Args[1:], " ")}
	if r.Machine, err = describeMachine(temp); err != nil {
		return err
	}
	fmt.Fprintln(out, r.Machine)
	several := len(cfg.scenarios) > 1 || len(cfg.contestants) != 1
	for _, name := range cfg.scenarios {
		who, err := contestantsFor(name, cfg.contestants)
		if err != nil {
			return err
		}
		for _, contestant := range who {
			one := cfg
			if one.cpuProfile != "" && several {
				one.cpuProfile += "." + name + "." + contestant
			}
			if ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "%s %s, load %.1f …\n", name, contestant, load())
				r.Results = append(r.Results, measureInChild(ctx, self, temp, name, contestant, one))
			}
		}
	}
	r.Machine.LoadAfter = load()
	if err := r.text(out); err != nil || cfg.out == "" {
		return errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(r.writeTo(cfg.out), context.Cause(ctx)) // also of what was measured before an interrupt
}

// measureInChild makes one measurement in a process of its own.
func measureInChild(ctx context.Context, self, temp, scenario, contestant string, cfg config) result {
	failed := result{Scenario: scenario, Contestant: contestant, Title: title(contestant), Load: load()}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cfg.seconds)*time.Second+measureLimit)
	defer cancel()
	dir, err := os.MkdirTemp(temp, "etcd-")
	if err != nil {
		failed.Failed = err.Error()
		return failed
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, self, "-child", "-scenario", scenario, "-contestant", contestant,
		"-seconds", strconv.Itoa(cfg.seconds), "-cpuprofile", cfg.cpuProfile)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	answer, err := cmd.Output()
	if err != nil {
		failed.Failed = err.Error()
		return failed
	}
	r := failed
	if err := json.Unmarshal(answer, &r); err != nil {
		failed.Failed = err.Error()
		return failed
	}
	r.Load = failed.Load
	return r
}

// measureOne makes one measurement in this process and writes it as JSON.
func measureOne(ctx context.Context, cfg config, out io.Writer) error {
	if len(cfg.scenarios) != 1 || len(cfg.contestants) != 1 {
		return errors.New("-child makes one measurement: name one scenario and one contestant")
	}
	r, err := measureHere(ctx, cfg, cfg.scenarios[0], cfg.contestants[0])
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

func measureHere(ctx context.Context, cfg config, name, contestant string) (result, error) {
	s, err := parseScenario(name)
	if err != nil {
		return result{}, err
	}
	b, err := newBed(s, contestant, cfg)
	if err != nil {
		return result{}, err
	}
	defer b.close()
	r := result{Scenario: name, Contestant: contestant, Title: title(contestant), Jobs: s.jobs}
	if err := measures[s.kind](ctx, b, &r); err != nil {
		return result{}, fmt.Errorf("%s of %s: %w", name, contestant, err)
	}
	return r, nil
}

// writeTo writes the report into a folder: for people, for programs, and as a picture.
func (r *report) writeTo(dir string) error {
	for name, write := range map[string]func(io.Writer) error{
		"results.txt":  func(w io.Writer) error { fmt.Fprintln(w, r.Machine); return r.text(w) },
		"results.json": r.json,
		"results.svg":  r.plot,
	} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
