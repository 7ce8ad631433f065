// Package config reads the jobs file: YAML, every fault of it at once, each with its line.
//
//	defaults: {time_zone: Asia/Shanghai, timeout: 10m}
//	jobs:
//	  daily_billing:
//	    schedule: "0 9 * * *"
//	    command: ["/opt/billing/run", "--all"]
//
// It works on the tree of YAML nodes, since only they know their lines. Aliases are followed, but never
// to more entries than a file could hold by itself, so that a small file cannot grow without bound.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/executor"
)

// MaxSize is the greatest size of a jobs file, in bytes.
const MaxSize = 4 << 20

// File is a jobs file that was read and checked.
type File struct {
	Name string
	Jobs []JobSpec // as they stand in the file
}

// JobSpec is a job of the file. Job and what it runs pass their Checks. Job has no Handler: whoever registers
// it makes one of Webhook, or of Command, whose Grace is not set, and Job.Alert's Notify of Notify. Job's Target shows it to people.
type JobSpec struct {
	Job     cronrunner.Job
	Command executor.Command
	Webhook *executor.Webhook // nil for a command
	Notify  *executor.Webhook // that Job.Alert is told to, with the Target that it has; nil for none
	Line    int               // of the job's name
}

// Load reads and checks the jobs file at path. Its error is FaultErrors.
func Load(path string) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, FaultErrors{{File: path, Err: fmt.Errorf("cannot be read: %w", err)}}
	}
	return Parse(path, data)
}

// read stops soon after MaxSize, whatever path leads to.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody writes to must not hang
	if err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err // the path is named already
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// Parse checks data as a jobs file; name stands for it in faults. Its error is FaultErrors: all of them.
func Parse(name string, data []byte) (*File, error) {
	p := &parser{file: name}
	root := p.document(data)
	file := &File{Name: name}
	if root != nil {
		file.Jobs = p.jobsFile(root)
	}
	if len(p.faults) > 0 {
		return nil, p.faults.sorted()
	}
	return file, nil
}

// document is the root node of data; nil, with a fault, when there is none to look into.
func (p *parser) document(data []byte) *yaml.Node {
	if len(data) > MaxSize {
		p.faultf(0, "", "is larger than %d MiB", MaxSize>>20)
		return nil
	}
	if fault := badText(data); fault != nil {
		p.faultErr(fault.Line, "", fault.Err)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	switch {
	case errors.Is(err, io.EOF), err == nil && isNull(first.Content[0]):
		p.faultf(0, "", "has no jobs; it begins with %q", "jobs:")
		return nil
	case err == nil:
		err = decoder.Decode(&second)
		if err == nil {
			p.faultf(second.Line, "", "a second YAML document begins here; a jobs file is one: remove the line ---")
			return nil
		}
	}
	if !errors.Is(err, io.EOF) {
		line, field, problem := explain(data, err)
		p.faultf(line, field, "%s", problem)
		return nil
	}
	return first.Content[0]
}

// jobsFile reads the file's top level.
func (p *parser) jobsFile(root *yaml.Node) (jobs []JobSpec) {
	top := make(map[string]entry)
	for _, e := range p.mapping("", root) {
		if top[e.key] = e; e.key != "jobs" && e.key != "defaults" {
			p.faultf(e.line, label(e.key), "unknown field; %s", meant(e.key, []string{"defaults", "jobs"}))
		}
	}
	defaults := &draft{path: "defaults", line: root.Line}
	if e, ok := top["defaults"]; ok && !isNull(follow(e.value)) { // it may be all commented out
		defaults = p.defaults(e)
	}
	e, ok := top["jobs"]
	if !ok {
		if root.Kind == yaml.MappingNode {
			p.faultf(root.Line, "jobs", "is missing: it maps the name of each job to its schedule and command")
		}
		return nil
	}
	entries := p.mapping("jobs", e.value)
	if node := follow(e.value); node.Kind == yaml.MappingNode && len(node.Content) == 0 {
		p.faultf(e.line, "jobs", "has no jobs")
	}
	for _, e := range entries {
		jobs = append(jobs, p.job(e, defaults))
	}
	return jobs
}
