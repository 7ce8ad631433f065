package browser

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdcron/etcdcron/internal/httpapi"
	"github.com/etcdcron/etcdcron/state"
	"github.com/etcdcron/etcdcron/test/etcdtest"
)

// patience is how long a test waits for what has to happen, on the slowest of machines.
const patience = 90 * time.Second

// bed is a server on an etcd.
type bed struct {
	t      *testing.T
	client *clientv3.Client
	store  *state.Store
	url    string
}

type health struct{}

func (health) Ready(context.Context) httpapi.Readiness { return httpapi.Readiness{} }

// serve starts a server on an etcd of its own.
func serve(t *testing.T, access *httpapi.Access) *bed {
	t.Helper()
	b := &bed{t: t, client: etcdtest.Start(t).Client(t)}
	keys, err := state.NewKeys("", "")
	require.NoError(t, err)
	b.store = state.NewStore(b.client, keys, state.StoreConfig{})
	server := httpapi.New(httpapi.Config{Health: health{}, Metrics: prometheus.NewRegistry(), Access: access})
	server.Connect(b.client, b.store)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.url = "http://" + ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		server.Shutdown(ctx)
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return b
}

// chromium is the path of the browser. Without one a test is skipped, and fails when CI is set.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no chromium on this machine: apt-get install chromium")
	}
	t.Skip("there is no chromium on this machine: apt-get install chromium")
	return ""
}

// browse starts a browser with a window of that size, and ends it with the test.
func browse(t *testing.T, width, height int64) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("lang", "en-US"), chromedp.Flag("hide-scrollbars", true))
	ctx, stopAll := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stopAll)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})))
	return ctx
}

// within is a context for one step, so that none is waited for without an end.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

// do takes steps in a browser. What a step was about to use may have been swapped for its new self at that moment, or the
// page may have gone elsewhere by itself: then nothing was done yet, and it is tried again.
func do(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := within(ctx)
	defer cancel()
	for _, step := range steps {
		err := chromedp.Do(ctx, step)
		for swapped(err) && ctx.Err() == nil {
			err = chromedp.Do(ctx, step)
		}
		require.NoError(t, err)
	}
}

func swapped(err error) bool {
	var gone *cdproto.Error
	return errors.As(err, &gone) && strings.Contains(gone.Message, "node with given id") ||
		err != nil && strings.Contains(err.Error(), "net::ERR_ABORTED")
}

// await waits until an expression is true on the page, which may be on its way to another.
func await(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := within(ctx)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression))
		var left *cdproto.Error
		if errors.As(err, &left) && ctx.Err() == nil {
			continue // the document has gone, and another one comes
		}
		if err != nil {
			said, _ := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS("body")))
			require.NoError(t, err, "%s\n%s", expression, said)
		}
		return
	}
}

// eval is what an expression is on the page.
func eval[T any](ctx context.Context, t *testing.T, expression string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	ctx, cancel := within(ctx)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	require.NoError(t, err, expression)
	return value
}
