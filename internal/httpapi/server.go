package httpapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10

	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4 // at once; each holds all series in memory
)

// Config is what the API is made of.
type Config struct {
	Health  Health              // required
	Metrics prometheus.Gatherer // required
	Logger  *zap.Logger         // default none
}

// NewServer returns a server that is ready to Serve. It starts nothing.
func NewServer(cfg Config) *http.Server {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	// Most of what a server has to say is about clients that went away.
	errorLog, _ := zap.NewStdLogAt(cfg.Logger, zapcore.DebugLevel)
	return &http.Server{
		Handler:           harden(routes(cfg)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errorLog,
	}
}

// routes is every path there is. /v1/ and the web page at / have their places here.
func routes(cfg Config) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", ready(cfg.Health))
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
	return mux
}

// harden is what holds for every answer.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
