package browser

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// watch has a test fail when a page asks anybody but its own server for something, or when the console has an error.
// What a page was refused on purpose is expected.
func watch(ctx context.Context, t *testing.T, origin string, expected ...string) {
	t.Helper()
	var mu sync.Mutex
	var wrong []string
	add := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range expected {
			if strings.Contains(text, e) {
				return
			}
		}
		wrong = append(wrong, text)
	}
	require.NoError(t, chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			// What the browser draws its own controls with is data.
			if !strings.HasPrefix(ev.Request.URL, origin+"/") && !strings.HasPrefix(ev.Request.URL, "data:") {
				add("a request went to " + ev.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			add("a script failed: " + ev.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if ev.Type == "error" || ev.Type == "warning" {
				add("a script complains")
			}
		case *log.EventEntryAdded:
			if ev.Entry.Level == "error" || ev.Entry.Level == "warning" {
				add("the console says: " + ev.Entry.Text + " " + ev.Entry.URL)
			}
		}
	}))
	do(ctx, t, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return err
	}))
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, wrong)
	})
}
