package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/state"
)

//go:embed templates
var templateFiles embed.FS

// content is what a page shows: a template and its data.
type content struct {
	template string // the file that defines its main part
	title    string
	events   string // the address of the events after which the page is to be looked at again; "" for none
	data     any
}

// templates are the pages of one language, each with the layout around it.
type templates map[string]*template.Template

// parseTemplates panics when a template cannot be parsed: that is a fault of the build.
func parseTemplates(l language, a *assets) templates {
	shared := template.New("").Funcs(template.FuncMap{
		"say":     l.say,
		"asset":   func(name string) string { return a.at[name] },
		"number":  number,
		"status":  func(s state.RunStatus) string { return l.status(string(s)) },
		"reason":  l.reason,
		"segment": url.PathEscape,
	})
	shared = template.Must(shared.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	all := make(templates)
	for _, name := range []string{"jobs", "job", "preview", "run", "requested", "cluster", "examined", "error", "signin"} {
		all[name] = template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return all
}

// sheet is what the layout is made of.
type sheet struct {
	Title     string
	Tag       string // of the language
	OtherLang string // the address of this page in the other language
	OtherTag  string
	Here      string // the part of the site
	Events    string
	Said      string // what came of a form
	Who       Caller
	Data      any
}

// fragmentHeader asks for the main part of a page alone.
const fragmentHeader = "X-Fragment"

// render writes a page.
func (p *Pages) render(w http.ResponseWriter, v *visit, code int, c content) {
	s := sheet{
		Title: c.title, Tag: v.lang.tag(), Events: c.events, Who: v.who, Data: c.data, Here: c.template,
	}
	other := languages[(int(v.lang)+1)%len(languages)]
	s.OtherTag, s.OtherLang = other.tag(), inLanguage(v.URL, other)
	if v.Method != http.MethodGet { // a link cannot send a form again
		s.OtherLang = inLanguage(&url.URL{Path: "/"}, other)
	}
	if said := "said." + v.URL.Query().Get("said"); v.Method == http.MethodGet && knows(said) {
		s.Said = v.lang.say(said)
	}
	part := "page"
	if v.Header.Get(fragmentHeader) != "" {
		part = "main"
	}
	var b bytes.Buffer
	if err := p.templates[v.lang][c.template].ExecuteTemplate(&b, part, &s); err != nil {
		p.log.Error("a page cannot be made", zap.String("page", c.template), zap.Error(err))
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", v.lang.tag())
	h.Set("Vary", "Accept-Language, Cookie, "+fragmentHeader)
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // an error is of a client that has gone
}

// inLanguage is the address of a page in a language.
func inLanguage(u *url.URL, l language) string {
	q := u.Query()
	q.Del("said")
	q.Set("lang", l.short())
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: q.Encode()}).String()
}

// trouble is what the error page says.
type trouble struct {
	What, Try     string // in the reader's language
	Details, Hint string // as the fault says it
	Home          string
	Again         string // the address to try again; "" when that is of no use
}

// refuse answers with what is wrong, and what to try.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := &visit{Request: r, pages: p, lang: languageOf(w, r), who: p.cfg.Caller(r)}
	kind, code := kindOf(err)
	if code == http.StatusInternalServerError {
		p.log.Warn("a page failed", zap.String("path", r.URL.Path), zap.Error(err))
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	t := trouble{What: v.lang.say("fault." + kind), Try: v.lang.say("fault." + kind + ".try"), Details: err.Error(), Home: "/"}
	if f := fault.Of(err); f != nil {
		t.Hint = f.Hint
	}
	if job := r.PathValue("job"); job != "" && code != http.StatusNotFound && state.CheckJobName(job) == nil {
		t.Home = "/jobs/" + job
		if run := r.PathValue("run"); run != "" {
			t.Home += "/runs/" + url.PathEscape(run)
		}
	}
	if r.Method == http.MethodGet && code >= http.StatusInternalServerError {
		t.Again = r.URL.RequestURI()
	}
	p.render(w, v, code, content{template: "error", title: t.What, data: t})
}

// kindOf is what is wrong, by the table of words, and the status that says it.
func kindOf(err error) (kind string, code int) {
	if errors.Is(err, errForbidden) {
		return "forbidden", http.StatusForbidden
	}
	f := fault.Of(err)
	k := fault.Kind("")
	switch {
	case f != nil:
		k = f.Kind
	case errors.Is(err, state.ErrBadName), errors.Is(err, state.ErrBadRequest):
		k = fault.BadInput
	case errors.Is(err, state.ErrNotFound):
		k = fault.NotFound
	case errors.Is(err, context.Canceled):
		k = fault.Interrupted
	case state.Unreachable(err):
		k = fault.NoConnection
	}
	switch k {
	case fault.BadInput:
		code = http.StatusBadRequest
	case fault.NotFound, fault.NotLeading:
		code = http.StatusNotFound
	case fault.Paused, fault.Retired, fault.Invalid, fault.RunOver, fault.RunNotOver:
		code = http.StatusConflict
	case fault.UnknownOutcome, fault.Interrupted:
		code = http.StatusGatewayTimeout
	case fault.NoConnection, fault.Unavailable:
		code = http.StatusServiceUnavailable
	default:
		return "internal", http.StatusInternalServerError
	}
	if key := strings.TrimSpace(string(k)); knows("fault." + key) {
		return key, code
	}
	return "internal", code
}
