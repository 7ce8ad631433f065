package browser

import (
	_ "embed"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed rules.js
var rules string

// Each page keeps the rules, in light and dark, wide and narrow.
func TestAccessible(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b, live := planted(t)
	empty := serve(t, nil)
	def, err := b.store.Job(t.Context(), "fx_rates")
	require.NoError(t, err)
	pages := []string{
		b.url + "/", b.url + "/?state=paused&q=team", b.url + "/?q=nothing", b.url + "/jobs/daily_billing", b.url + "/jobs/dunning", b.url + "/jobs/fx_rates",
		b.url + "/jobs/warehouse_sync?lang=zh", b.url + "/jobs/daily_billing/runs/" + live + "?lang=en", b.url + "/jobs/fx_rates/runs/" + def.View.Status.LastRunID, b.url + "/cluster",
		b.url + "/jobs/cache_warm/backfill?from=2026-11-01T00%3A00&to=2026-11-01T01%3A00", b.url + "/jobs/usage_report?said=paused", b.url + "/jobs/nowhere",
		empty.url + "/", empty.url + "/cluster",
	}
	for _, l := range append(looks, look{"narrow and dark", "dark", 390, 844}) {
		do(ctx, t, chromedp.EmulateViewport(l.width, l.height), prefer(l.scheme))
		for _, page := range pages {
			do(ctx, t, chromedp.Navigate(page))
			await(ctx, t, `document.readyState === "complete"`)
			eval[bool](ctx, t, `(document.querySelectorAll("details").forEach((d) => { d.open = true; }), true)`)
			require.Empty(t, eval[[]string](ctx, t, rules), "%s, %s", page, l.name)
		}
		do(ctx, t, chromedp.Navigate(b.url+"/cluster"))
		press(ctx, t, "Look for what is wrong")
		await(ctx, t, `location.pathname === "/cluster/examine" && document.readyState === "complete"`)
		require.Empty(t, eval[[]string](ctx, t, rules), "what the doctor says, %s", l.name)
	}
}

// A page that breaks the rules is found out: without this, rules that check nothing would pass.
func TestAccessible_FindsFaults(t *testing.T) {
	t.Parallel()
	ctx := browse(t, 1200, 800)
	b, _ := planted(t)
	for name, fault := range map[string]string{
		"name":      `document.querySelector("tbody a").textContent = ""`,
		"heading":   `document.querySelector("h1").outerHTML = "<h3>x</h3>"`,
		"contrast":  `document.querySelector("tbody td").style.color = "#999"`,
		"focus":     `document.querySelector("tbody a").style.outline = "none"`,
		"lang":      `document.documentElement.removeAttribute("lang")`,
		"table":     `document.querySelector("tbody th").remove()`,
		"image":     `document.querySelector("svg.strip").removeAttribute("role")`,
		"width":     `document.querySelector("h1").style.minWidth = "3000px"`,
		"id":        `document.querySelector("h1").id = "main"`,
		"reference": `document.querySelector("h1").setAttribute("aria-labelledby", "none")`,
		"landmark":  `document.querySelector("footer").remove()`,
		"order":     `document.querySelector("h1").tabIndex = 3`,
	} {
		do(ctx, t, chromedp.Navigate(b.url+"/"))
		await(ctx, t, `document.readyState === "complete"`)
		eval[bool](ctx, t, `document.getElementById("live").click() === undefined`) // nothing mends it
		eval[bool](ctx, t, `(`+fault+`, true)`)
		found := eval[[]string](ctx, t, rules)
		require.NotEmpty(t, found, name)
		require.Contains(t, found[0], name+":", "%v", found)
	}
}
