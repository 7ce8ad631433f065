package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// asset is an embedded file. Its address has the hash of what it holds, so a browser may keep it for ever.
type asset struct {
	kind string
	body []byte
}

// assets are the files by the last part of their address, and the address of each by its name.
type assets struct {
	files map[string]asset
	at    map[string]string
}

// assetKinds are the media types of the files, by the end of their names.
var assetKinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// loadAssets panics when the files are not as they were when this was built: that is a fault of the build.
func loadAssets() *assets {
	a := &assets{files: make(map[string]asset), at: make(map[string]string)}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		body, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a.files[name] = asset{kind: assetKinds[ext], body: body}
		a.at[e.Name()] = "/assets/" + name
	}
	return a
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.files[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(file.body) // an error is of a client that has gone
}
