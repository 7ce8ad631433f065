// Package browser looks at the web page as people do: in a real browser, against a real server on a real etcd. It is a
// module of its own, so that what drives the browser does not enter the product's go.mod.
//
// The tests need Chromium. Where it is missing they are skipped, and fail when CI is set. [TestScreenshots] writes the
// pictures of the documentation when it is told where to: make screenshots.
package browser
