package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// boundTo is the annotation of a flag with the variables that it can be given by.
const boundTo = "etcdcron_environment"

// bindEnvironment has a flag that is not given taken from a variable: a prefix and the flag's name, as in
// ETCDCRON_DIAL_TIMEOUT. The first variable that is set and not empty counts.
func bindEnvironment(f *pflag.FlagSet, flag string, prefixes ...string) {
	name := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	variables := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		variables[i] = prefix + name
	}
	if err := f.SetAnnotation(flag, boundTo, variables); err != nil {
		panic(err) // no such flag: our own mistake, seen by every test
	}
	f.Lookup(flag).Usage += " ($" + strings.Join(variables, ", $") + ")"
}

// fromEnvironment sets the flags that were not given.
func fromEnvironment(f *pflag.FlagSet, getenv func(string) string) (err error) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || err != nil {
			return
		}
		for _, variable := range flag.Annotations[boundTo] {
			value := getenv(variable)
			if value == "" {
				continue
			}
			if setErr := f.Set(flag.Name, value); setErr != nil {
				err = &failure{
					code: exitBadInput, err: fmt.Errorf("variable %s is %q: %w", variable, value, cause(setErr)),
					try: "unset " + variable,
				}
			}
			return
		}
	})
	return err
}
