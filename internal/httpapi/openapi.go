package httpapi

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.yaml
var openAPIFile []byte

// openAPI describes all of this, for programs (https://spec.openapis.org/oas/v3.1.0).
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPIFile) // an error is of a client that has gone
}
