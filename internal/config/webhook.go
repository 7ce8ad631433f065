package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdcron/etcdcron/internal/executor"
)

func readWebhook(p *parser, d *draft, path string, v *yaml.Node) bool {
	d.webhook = &executor.Webhook{}
	if node := follow(v); node.Kind != yaml.MappingNode {
		p.faultf(node.Line, path, `must be a mapping, not %s; write {url: "https://…"}`, kind(node))
		return false
	}
	return p.parts(d, "webhook", path, v, webhookParts)
}

var webhookParts = map[string]field{
	"url":     {read: readURL},
	"method":  webhookText(func(w *executor.Webhook) *string { return &w.Method }),
	"headers": {read: readHeaders},
	"body":    {read: readBody},
	"ca":      webhookText(func(w *executor.Webhook) *string { return &w.CACert }),
	"cert":    webhookText(func(w *executor.Webhook) *string { return &w.Cert }),
	"key":     webhookText(func(w *executor.Webhook) *string { return &w.Key }),
}

func webhookText(of func(*executor.Webhook) *string) field {
	return field{read: func(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
		*of(d.webhook), ok = p.word(path, v)
		return ok
	}}
}

// readURL takes a text alone: {env: NAME} is for headers.
func readURL(p *parser, d *draft, path string, v *yaml.Node) (ok bool) {
	d.webhook.URL, ok = p.word(path, v)
	return ok
}

func readBody(p *parser, d *draft, path string, v *yaml.Node) bool {
	if k := follow(v).Kind; k == yaml.MappingNode || k == yaml.SequenceNode {
		p.faultf(follow(v).Line, path, `must be text, not %s; put JSON in quotes: '{"a": 1}'`, kind(follow(v)))
		return false
	}
	text, ok := p.text(path, v)
	d.webhook.Body = &text
	return ok
}

func readHeaders(p *parser, d *draft, path string, v *yaml.Node) bool {
	d.webhook.Headers = p.headers(path, v)
	return true
}

// headers has each header checked by itself, so that a fault has its line.
func (p *parser) headers(path string, v *yaml.Node) map[string]executor.HeaderValue {
	headers := make(map[string]executor.HeaderValue)
	if isNull(follow(v)) {
		return headers // all of it commented out
	}
	seen := make(map[string]string)
	for _, e := range p.mapping(path, v) {
		at := join(path, label(e.key))
		value, ok := p.headerValue(at, e.value)
		if !ok {
			continue
		}
		if err := executor.CheckHeader(e.key, value); err != nil {
			p.faultErr(e.line, at, err)
			continue
		}
		if before, twice := seen[strings.ToLower(e.key)]; twice {
			p.faultf(e.line, at, "is the same header as %s", before)
			continue
		}
		seen[strings.ToLower(e.key)] = e.key
		headers[e.key] = value
	}
	return headers
}

// headerValue is a text, or {env: NAME} or {file: PATH}.
func (p *parser) headerValue(path string, v *yaml.Node) (value executor.HeaderValue, ok bool) {
	if follow(v).Kind != yaml.MappingNode {
		value.Text, ok = p.text(path, v)
		return value, ok
	}
	before := len(p.faults)
	entries := p.mapping(path, v)
	for _, e := range entries {
		switch part := join(path, label(e.key)); e.key {
		case "env":
			value.Env, _ = p.word(part, e.value)
		case "file":
			value.File, _ = p.word(part, e.value)
		default:
			p.unknown(e, part, []string{"env", "file"})
		}
	}
	if len(p.faults) == before && len(entries) != 1 {
		p.faultf(follow(v).Line, path, "must be a text, {env: NAME} or {file: PATH}")
	}
	return value, len(p.faults) == before
}
