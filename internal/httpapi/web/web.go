package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/steer"
	"github.com/etcdcron/etcdcron/state"
)

const (
	answerTimeout = 10 * time.Second // of all that a page asks of etcd
	placeTimeout  = time.Second      // how long a request waits for its place
	maxPages      = 4                // that are made at once
	maxForm       = 16 << 10         // bytes of a form
)

// Caller is who asks, as access control has found.
type Caller struct {
	Name     string // how he is put on record
	MayAsk   bool   // for changes
	Known    bool   // by a token or a certificate
	SignedIn bool   // with a cookie, so he can sign out
}

// Config is what the pages are made of.
type Config struct {
	// Etcd is where answers come from; ok is false before etcd is reached. Required.
	Etcd func() (client *clientv3.Client, store *state.Store, ok bool)
	// Caller says who asks. Default somebody who may do everything.
	Caller func(*http.Request) Caller
	// Open checks a token that somebody signs in with, and returns the key that his session is sealed with (see
	// [Seal]). Default none: nobody has to sign in.
	Open func(token string) (key []byte, ok bool)
	// Logger is told what was asked for, by whom, and what went wrong. Default none.
	Logger *zap.Logger
}

// Pages answers with the pages. It may be used at once from anywhere.
type Pages struct {
	cfg       Config
	log       *zap.Logger
	mux       *http.ServeMux
	assets    *assets
	templates [len(languages)]templates
	places    chan struct{}
	roster    roster
	strips    *strips
	paces     *paces
	outcomes  *outcomes
	examining sync.Mutex // one at a time
	now       func() time.Time
}

// Paths are the patterns of net/http's mux under which the pages are to be found.
func Paths() []string {
	return []string{"/{$}", "/jobs/", "/cluster", "/cluster/", "/assets/", "/sign-in", "/sign-out"}
}

// New returns the pages. It starts nothing.
func New(cfg Config) *Pages {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Caller == nil {
		cfg.Caller = func(*http.Request) Caller { return Caller{Name: "the web page", MayAsk: true} }
	}
	p := &Pages{
		cfg: cfg, log: cfg.Logger, mux: http.NewServeMux(), assets: loadAssets(),
		places: make(chan struct{}, maxPages), strips: newStrips(), paces: newPaces(), outcomes: newOutcomes(), now: time.Now,
	}
	for _, l := range languages {
		p.templates[l] = parseTemplates(l, p.assets)
	}
	p.routes()
	return p
}

func (p *Pages) routes() {
	p.mux.Handle("GET /assets/{file}", p.assets)
	p.mux.HandleFunc("GET /{$}", p.page(jobsPage))
	p.mux.HandleFunc("GET /jobs/{job}", p.page(jobPage))
	p.mux.HandleFunc("GET /jobs/{job}/backfill", p.page(previewPage))
	p.mux.HandleFunc("GET /jobs/{job}/runs/{run}", p.page(runPage))
	p.mux.HandleFunc("GET /cluster", p.page(clusterPage))
	p.mux.HandleFunc("POST /cluster/examine", p.page(examinedPage))
	p.mux.HandleFunc("POST /jobs/{job}/trigger", p.form(trigger))
	p.mux.HandleFunc("POST /jobs/{job}/pause", p.form(pause))
	p.mux.HandleFunc("POST /jobs/{job}/resume", p.form(resume))
	p.mux.HandleFunc("POST /jobs/{job}/backfill", p.form(backfill))
	p.mux.HandleFunc("POST /jobs/{job}/runs/{run}/cancel", p.form(cancel))
	p.mux.HandleFunc("POST /jobs/{job}/runs/{run}/retry", p.form(retry))
	p.mux.HandleFunc("GET /sign-in", p.signInPage)
	p.mux.HandleFunc("POST /sign-in", p.signIn)
	p.mux.HandleFunc("POST /sign-out", p.signOut)
	p.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.refuse(w, r, &fault.Error{Kind: fault.NotFound, Err: errors.New("there is no page at " + r.URL.Path)})
	})
}

// policy is what the pages may do in a browser: only what comes from here, as files of their own.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// visit is a request that is being answered.
type visit struct {
	*http.Request

	pages  *Pages
	client *clientv3.Client
	store  *state.Store
	lang   language
	who    Caller
	now    time.Time
}

// note is who asks, and why.
func (v *visit) note() steer.Note {
	return steer.Note{By: v.who.Name, Reason: v.PostFormValue("reason")}
}

// job is the job that the address names.
func (v *visit) job() (string, error) {
	name := v.PathValue("job")
	return name, state.CheckJobName(name)
}

// page answers with what show has put together: the data of a template.
func (p *Pages) page(show func(ctx context.Context, v *visit) (content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var c content
		v, err := p.visit(w, r, func(ctx context.Context, v *visit) (err error) {
			c, err = show(ctx, v)
			return err
		})
		if err != nil {
			p.refuse(w, r, err)
			return
		}
		p.render(w, v, http.StatusOK, c)
	}
}

// form does what a form asks for, and leads to where one sees what came of it.
func (p *Pages) form(do func(ctx context.Context, v *visit) (next string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who := p.cfg.Caller(r)
		log := p.log.With(zap.String("path", r.URL.Path), zap.String("by", who.Name))
		var next string
		_, err := p.visit(w, r, func(ctx context.Context, v *visit) (err error) {
			next, err = do(ctx, v)
			return err
		})
		if err != nil {
			log.Info("a change was asked for on the web page, and refused", zap.Error(err))
			p.refuse(w, r, err)
			return
		}
		log.Info("a change was asked for on the web page")
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}

var (
	errStarting = &fault.Error{Kind: fault.Unavailable, Err: errors.New("this instance has not reached etcd yet")}
	errBusy     = &fault.Error{Kind: fault.Unavailable, Err: errors.New("this instance has too many pages to make at the moment")}
)

// errForbidden is the error of a change by somebody who may only read.
var errForbidden = errors.New("this needs the operator's token")

// visit does a request's work in one of the places, within the time that there is for it.
func (p *Pages) visit(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, v *visit) error) (*visit, error) {
	v := &visit{Request: r, pages: p, lang: languageOf(w, r), who: p.cfg.Caller(r), now: p.now().UTC()}
	if r.Method == http.MethodPost {
		if !v.who.MayAsk {
			return v, errForbidden
		}
		// All of the form is read before a place is taken, so that a slow one keeps nobody waiting.
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return v, &fault.Error{Kind: fault.BadInput, Err: errors.New("the form cannot be read: " + err.Error())}
		}
	}
	var ok bool
	if v.client, v.store, ok = p.cfg.Etcd(); !ok {
		return v, errStarting
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	wait := time.NewTimer(placeTimeout)
	defer wait.Stop()
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-wait.C:
		return v, errBusy
	case <-ctx.Done():
		return v, ctx.Err()
	}
	return v, do(ctx, v)
}
