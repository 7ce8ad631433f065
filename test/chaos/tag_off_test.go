//go:build !mutation

package chaos

// buildTags is what the processes of the tests are built with.
const buildTags = ""
