package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/cronrunner"
	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/state"
)

// gated is a job that is never due by itself, and whose runs do a part each time they are let.
type gated struct{ part chan struct{} }

const parts = 4

func (g *gated) run(ctx context.Context, run *cronrunner.Run) error {
	for done := int64(0); ; done++ {
		run.Progress(done, parts, "accounts")
		if done == parts {
			run.SetOutput("all accounts are charged")
			return nil
		}
		select {
		case <-g.part:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// schedule runs a scheduler on a bed, with a job that is gated.
func schedule(t *testing.T, b *bed) *gated {
	t.Helper()
	g := &gated{part: make(chan struct{})}
	s, err := cronrunner.New(b.client, cronrunner.Config{InstanceID: "a", DrainTimeout: -1, LeaderTTL: 2 * time.Second})
	require.NoError(t, err)
	require.NoError(t, s.Register(cronrunner.Job{Name: "billing", Schedule: "0 0 1 1 *", Description: "charges every account", Handler: g.run}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.Eventually(t, func() bool {
		def, err := b.store.Job(t.Context(), "billing")
		return err == nil && def.SpecRev != 0
	}, patience, 10*time.Millisecond)
	return g
}

// press clicks on what a form's button says.
func press(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	do(ctx, t, chromedp.Click(chromedp.Search(`//button[contains(normalize-space(.), "`+text+`")]`)))
	do(ctx, t, chromedp.MouseEvent(chromedp.MouseMoved, 1, 1)) // it is over nothing that would be kept from changing
}

// shows waits until the main part of the page has a text.
func shows(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	await(ctx, t, `document.getElementById("main")?.innerText.includes("`+text+`")`)
}

// A run that is triggered on the page is seen to start, to get on and to succeed, without a reload.
func TestRunIsSeenLive(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b := serve(t, nil)
	g := schedule(t, b)
	watch(ctx, t, b.url)
	do(ctx, t, chromedp.Navigate(b.url+"/jobs/billing"))
	press(ctx, t, "Run now")
	await(ctx, t, `location.pathname.startsWith("/jobs/billing/runs/")`)
	eval[bool](ctx, t, `window.sameDocument = true`)
	shows(ctx, t, "Cancel this run")
	shows(ctx, t, "running")
	for part := range parts {
		await(ctx, t, `document.querySelector("progress")?.value === `+string(rune('0'+part)))
		g.part <- struct{}{}
	}
	shows(ctx, t, "succeeded")
	shows(ctx, t, "all accounts are charged")
	shows(ctx, t, "Run it once more")
	require.True(t, eval[bool](ctx, t, `window.sameDocument === true`), "the page was loaded again")

	// The list has it as well, and another one begins without a reload there.
	do(ctx, t, chromedp.Navigate(b.url+"/"))
	shows(ctx, t, "succeeded")
	eval[bool](ctx, t, `window.sameDocument = true`)
	_, err := b.store.Submit(t.Context(), state.Request{Kind: state.AskTrigger, Job: "billing"})
	require.NoError(t, err)
	await(ctx, t, `document.querySelector("tbody .b-running") !== null`)
	await(ctx, t, `document.querySelector("tbody progress")?.max === `+string(rune('0'+parts)))
	require.True(t, eval[bool](ctx, t, `window.sameDocument === true`))
	for range parts {
		g.part <- struct{}{}
	}
	await(ctx, t, `document.querySelector("tbody .b-running") === null`)
}

func TestPauseAndCancel(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b := serve(t, nil)
	schedule(t, b)
	watch(ctx, t, b.url, "409")
	do(ctx, t, chromedp.Navigate(b.url+"/jobs/billing"))
	do(ctx, t, chromedp.SendKeys(chromedp.CSS(`form[action$="/pause"] input`), "the database moves"))
	press(ctx, t, "Pause")
	shows(ctx, t, "The job is paused")
	shows(ctx, t, "the database moves")
	def, err := b.store.Job(t.Context(), "billing")
	require.NoError(t, err)
	require.True(t, def.Control.Paused)
	require.Contains(t, def.Control.By, "127.0.0.1")
	press(ctx, t, "Resume")
	shows(ctx, t, "The job is resumed")

	// From the keyboard alone: to the button, and on it.
	eval[bool](ctx, t, `document.querySelector("form[action$='/trigger'] button").focus() === undefined`)
	do(ctx, t, chromedp.KeyEvent("\r"))
	shows(ctx, t, "Cancel this run")
	press(ctx, t, "Cancel this run")
	shows(ctx, t, "canceled")
	shows(ctx, t, "on request")

	// Paused by somebody else meanwhile: what the page offers is refused, and it says what to do.
	do(ctx, t, chromedp.Navigate(b.url+"/jobs/billing"))
	await(ctx, t, `document.querySelector("form[action$='/trigger'] button") !== null`)
	eval[bool](ctx, t, `document.getElementById("live").click() === undefined`) // so that the page does not hear of it
	_, err = b.store.Pause(t.Context(), "billing", "jo", "")
	require.NoError(t, err)
	press(ctx, t, "Run now")
	shows(ctx, t, "Resume it first.")
}

// What somebody has begun to write into a form is not taken from him.
func TestFormsAreKept(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b := serve(t, nil)
	schedule(t, b)
	watch(ctx, t, b.url)
	do(ctx, t, chromedp.Navigate(b.url+"/jobs/billing"))
	await(ctx, t, `document.getElementById("live").dataset.is === "on"`)
	do(ctx, t, chromedp.SendKeys(chromedp.CSS(`form[action$="/pause"] input`), "the data"))
	eval[bool](ctx, t, `document.activeElement.blur() === undefined`)
	_, err := b.store.Pause(t.Context(), "billing", "jo", "")
	require.NoError(t, err)
	await(ctx, t, `document.querySelector("#state .b-paused") !== null`) // the rest of the page tells
	require.Equal(t, "the data", eval[string](ctx, t, `document.querySelector("form[action$='/pause'] input")?.value ?? ""`))
}

// Without scripts the pages list, and do what they are asked.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b := serve(t, nil)
	g := schedule(t, b)
	watch(ctx, t, b.url)
	do(ctx, t, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	// text is what the main part of the page says, loaded anew.
	text := func() string {
		t.Helper()
		ctx, cancel := within(ctx)
		defer cancel()
		text, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS("#main")))
		require.NoError(t, err)
		return text
	}
	do(ctx, t, chromedp.Navigate(b.url+"/"))
	require.Contains(t, text(), "billing")
	do(ctx, t, chromedp.Click(chromedp.CSS(`tbody a`)), chromedp.WaitVisible(chromedp.CSS(`form[action$="/trigger"] button`)))
	do(ctx, t, chromedp.WaitNotVisible(chromedp.CSS("#live"))) // what needs scripts is not shown
	do(ctx, t, chromedp.Click(chromedp.CSS(`form[action$="/trigger"] button`)), chromedp.WaitReady(chromedp.CSS(`.said`)))
	for range parts {
		g.part <- struct{}{}
	}
	require.Eventually(t, func() bool {
		do(ctx, t, chromedp.Reload())
		return strings.Contains(text(), "all accounts are charged")
	}, patience, 100*time.Millisecond)
}

// What somebody is about to use is not swapped under his hands, and live updates can be paused.
func TestCalm(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b := serve(t, nil)
	schedule(t, b)
	watch(ctx, t, b.url)
	do(ctx, t, chromedp.Navigate(b.url+"/"))
	await(ctx, t, `document.getElementById("live").dataset.is === "on"`)
	pause := func(paused bool) {
		var err error
		if paused {
			_, err = b.store.Pause(t.Context(), "billing", "jo", "")
		} else {
			_, err = b.store.Resume(t.Context(), "billing", "jo", "")
		}
		require.NoError(t, err)
	}
	const badge = `document.querySelector("tbody .b-paused") !== null`
	// The link has the focus: the row stays as it is, though the tallies above tell.
	eval[bool](ctx, t, `document.querySelector("tbody a").focus() === undefined`)
	pause(true)
	await(ctx, t, `document.querySelector("#tallies .t-paused") !== null`)
	require.False(t, eval[bool](ctx, t, badge))
	eval[bool](ctx, t, `document.activeElement.blur() === undefined`)
	await(ctx, t, badge)

	press(ctx, t, "Live")
	require.Equal(t, "false", eval[string](ctx, t, `document.getElementById("live").getAttribute("aria-pressed")`))
	pause(false)
	// As long as an update takes at most, when nothing is in its way.
	eval[bool](ctx, t, `new Promise((done) => setTimeout(() => done(true), 1500))`, chromedp.EvalAwaitPromise)
	require.True(t, eval[bool](ctx, t, badge), "it was updated though updates are paused")
	press(ctx, t, "Paused")
	await(ctx, t, `document.querySelector("tbody .b-paused") === null`)
}

// Where access asks for a token, a browser gets in by it.
func TestSignIn(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("correct horse battery staple"[:7]+"-battery-staple"), 0o600))
	access, err := httpapi.NewAccess(httpapi.Secret{File: file}, httpapi.Secret{}, false, nil)
	require.NoError(t, err)
	b := serve(t, access)
	schedule(t, b)
	watch(ctx, t, b.url, "401")
	do(ctx, t, chromedp.Navigate(b.url+"/jobs/billing"))
	await(ctx, t, `location.pathname === "/sign-in"`)
	do(ctx, t, chromedp.SendKeys(chromedp.CSS(`input[name=token]`), "something else"))
	press(ctx, t, "Sign in")
	shows(ctx, t, "not a token of this server")
	do(ctx, t, chromedp.SendKeys(chromedp.CSS(`input[name=token]`), "correct-battery-staple"))
	press(ctx, t, "Sign in")
	await(ctx, t, `location.pathname === "/jobs/billing"`)
	await(ctx, t, `document.getElementById("live")?.dataset.is === "on"`) // events come as well
	require.Empty(t, eval[string](ctx, t, `document.cookie`), "scripts do not see the session")
	press(ctx, t, "Run now")
	shows(ctx, t, "Cancel this run")

	// Another token ends the session.
	require.NoError(t, os.WriteFile(file, []byte("another-token-of-this-server"), 0o600))
	do(ctx, t, chromedp.Navigate(b.url+"/"))
	await(ctx, t, `location.pathname === "/sign-in"`)
}
