package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// badText is what makes data no text at all, in terms that the YAML parser would not use.
func badText(data []byte) *FaultError {
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return &FaultError{Line: line, Err: errors.New("is not UTF-8 text; save the file as UTF-8")}
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &FaultError{Line: line, Err: fmt.Errorf("has a control character (%U); remove it, or write it as an escape in double quotes", r)}
		}
		rest = rest[size:]
	}
	return nil
}

// bareValue is a line whose value begins with a character that YAML keeps for itself: * is an alias, @ is
// reserved. Cron expressions begin with both.
var (
	bareValue = regexp.MustCompile(`^[\s-]*([\w.-]+)\s*:\s+([*@][^#]*?)\s*(?:#.*)?$`)
	alias     = regexp.MustCompile(`^\*[A-Za-z][\w-]*$`)
	yamlLine  = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
)

// explain says what a fault found by the YAML parser is, and where, in words for somebody who wrote a
// schedule and not a YAML document.
func explain(data []byte, err error) (line int, field, problem string) {
	lines := bytes.Split(data, []byte("\n"))
	message := yamlMessage(err)
	line, text := locate(data, lines, err), ""
	if 0 < line && line <= len(lines) {
		text = strings.TrimSuffix(string(lines[line-1]), "\r")
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	bare := bareValue.FindStringSubmatch(text)
	name, unknown := strings.CutPrefix(message, "unknown anchor '")
	switch {
	case bare != nil && !alias.MatchString(bare[2]):
		return line, bare[1], fmt.Sprintf("put it in quotes, since YAML reads %c in another way: %s: %q", bare[2][0], bare[1], bare[2])
	case unknown:
		name, _, _ = strings.Cut(name, "'")
		return line, "", fmt.Sprintf("there is no anchor &%s before the alias *%s", name, name)
	case strings.Contains(indent, "\t"):
		return line, "", "is indented with a tab; YAML wants spaces"
	default:
		return line, "", "is not valid YAML: " + message
	}
}

// maxLocate is the size up to which a fault is looked for line by line, in bytes.
const maxLocate = 256 << 10

// locate is the line on which err shows: the last of the shortest beginning of the file that has it. The
// parser's own line is that of the list or mapping around it, or the one before, or none.
func locate(data []byte, lines [][]byte, err error) int {
	if len(data) > maxLocate {
		line, _ := strconv.Atoi(yamlLine.FindStringSubmatch(err.Error())[1])
		return line
	}
	message, size, ends := yamlMessage(err), 0, make([]int, len(lines))
	for i, line := range lines {
		size += len(line) + 1
		ends[i] = min(size, len(data))
	}
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		var node yaml.Node
		err := yaml.Unmarshal(data[:ends[i]], &node)
		return err != nil && yamlMessage(err) == message
	})
}

// yamlMessage is err without the line.
func yamlMessage(err error) string { return yamlLine.ReplaceAllString(err.Error(), "") }
