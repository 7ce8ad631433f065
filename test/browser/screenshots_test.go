package browser

import (
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/state"
)

var screenshots = flag.String("screenshots", "", "`folder` to write the pictures of the documentation to")

// look is a way to look at a page.
type look struct {
	name          string
	scheme        string
	width, height int64
}

var looks = []look{
	{"light", "light", 1200, 800},
	{"dark", "dark", 1200, 800},
	{"narrow", "light", 390, 844},
}

// planted is a bed with the jobs of a seed, and the run of it that goes on.
func planted(t *testing.T) (b *bed, live string) {
	t.Helper()
	b = serve(t, nil)
	s := &seed{t: t, client: b.client, keys: b.store.Keys(), now: time.Now().UTC(), random: rand.New(rand.NewPCG(1, 2))}
	jobs := company()
	s.plant(jobs)
	def, err := b.store.Job(t.Context(), "daily_billing")
	require.NoError(t, err)
	live = def.View.Status.Live[0]
	// Somebody looks, and a moment later the run has gone on: now its rate can be told.
	resp, err := http.Get(b.url + "/jobs/daily_billing/runs/" + live)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	s.put(b.store.Keys().Progress("daily_billing", live), state.Progress{Done: 41_733, Total: 98_200, Message: "accounts charged", At: time.Now()})
	return b, live
}

func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("make screenshots tells where to write them")
	}
	b, live := planted(t)
	require.NoError(t, os.MkdirAll(*screenshots, 0o755))
	pages := []struct{ name, path string }{
		{"jobs", "/"}, {"job", "/jobs/daily_billing"}, {"run", "/jobs/daily_billing/runs/" + live}, {"cluster", "/cluster"},
	}
	ctx := browse(t, 1200, 800)
	for _, l := range looks {
		for _, p := range pages {
			do(ctx, t, chromedp.EmulateViewport(l.width, l.height), prefer(l.scheme), chromedp.Navigate(b.url+p.path))
			await(ctx, t, `!document.querySelector("[data-unread]")`)
			picture, err := chromedp.Run(ctx, whole(l.width, l.height))
			require.NoError(t, err, "%s %s", p.name, l.name)
			require.NoError(t, os.WriteFile(filepath.Join(*screenshots, p.name+"-"+l.name+".png"), picture, 0o644))
		}
	}
}

// prefer has pages believe that people want light, or dark.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	})
}

// maxPicture is how much of a long page a picture has.
const maxPicture = 1500

// whole takes a picture of a page from its top, as far as it goes.
func whole(width, height int64) chromedp.Action[[]byte] {
	return func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		long, err := chromedp.Evaluate[int64](`document.documentElement.scrollHeight`)(ctx, t)
		if err != nil {
			return nil, err
		}
		beyond := true
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{Width: float64(width), Height: float64(min(max(long, height), maxPicture)), Scale: 1},
		})
		return r.Data, err
	}
}
