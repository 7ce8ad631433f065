package web

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdcron/etcdcron/internal/fault"
	"github.com/etcdcron/etcdcron/internal/inspect"
	"github.com/etcdcron/etcdcron/state"
)

var verbs = regexp.MustCompile(`%[a-z]`)

// Both languages have every text, and put the same into it.
func TestWords_BothLanguages(t *testing.T) {
	t.Parallel()
	for key, texts := range words {
		require.NotEmpty(t, texts[english], key)
		require.NotEmpty(t, texts[chinese], key)
		require.Equal(t, verbs.FindAllString(texts[english], -1), verbs.FindAllString(texts[chinese], -1), key)
	}
	require.Len(t, strings.Split(english.say("units"), ","), 5)
	require.Len(t, strings.Split(chinese.say("units"), ","), 5)
}

// What the command line calls a reason is what the pages call it.
func TestWords_Reasons(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		state.ReasonOverlap, state.ReasonQueueFull, state.ReasonCoalesced, state.ReasonReplaced, state.ReasonRetired, state.ReasonRecordLost,
		state.ReasonPaused, state.ReasonCatchUp, state.ReasonSuperseded, state.ReasonLimit, state.ReasonWindow, state.ReasonFailed,
		state.ReasonTimeout, state.ReasonPanic, state.ReasonInstanceLost, state.ReasonDrain, state.ReasonRequested,
	} {
		require.True(t, knows("reason."+reason), reason)
		require.Equal(t, inspect.Reason(reason), english.reason(reason))
	}
	require.Equal(t, "of tomorrow", english.reason("of_tomorrow"))
	for _, s := range allStatuses {
		require.True(t, knows("status."+string(s)), s)
	}
	for _, k := range []fault.Kind{
		fault.BadInput, fault.NotFound, fault.Paused, fault.Retired, fault.Invalid, fault.RunOver, fault.RunNotOver,
		fault.NotLeading, fault.NoConnection, fault.UnknownOutcome, fault.Interrupted, fault.Unavailable,
	} {
		kind, code := kindOf(&fault.Error{Kind: k})
		require.Equal(t, string(k), kind)
		require.NotEqual(t, 500, code, k)
		require.True(t, knows("fault."+kind+".try"), k)
	}
}

func sources(t *testing.T, fsys fs.FS, pattern string) map[string]string {
	t.Helper()
	names, err := fs.Glob(fsys, pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	all := make(map[string]string)
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		all[name] = string(text)
	}
	return all
}

var (
	said      = regexp.MustCompile(`say "([^"]+)"`)
	actions   = regexp.MustCompile(`\{\{[^}]*\}\}`)
	tags      = regexp.MustCompile(`(?s)<[^>]*>`)
	readable  = regexp.MustCompile(`\s(?:title|aria-label|placeholder|alt)="([^"]*)"`)
	letters   = regexp.MustCompile(`\p{L}`)
	iconNames = regexp.MustCompile(`(?s)\{\{define "[a-z]+-icon"\}\}.*?\n`)
	commands  = regexp.MustCompile(`<code>etcdcron serve -c jobs.yaml</code>`)
)

// No template has a text of its own, and each asks for texts that there are.
func TestTemplates_NoTextOutsideTheTable(t *testing.T) {
	t.Parallel()
	for name, text := range sources(t, templateFiles, "templates/*.html") {
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			require.True(t, knows(m[1]), "%s asks for %q", name, m[1])
		}
		text = actions.ReplaceAllString(commands.ReplaceAllString(iconNames.ReplaceAllString(text, "\n"), ""), "")
		for _, m := range readable.FindAllStringSubmatch(text, -1) {
			require.False(t, letters.MatchString(m[1]), "%s: %s", name, m[0])
		}
		for line := range strings.SplitSeq(tags.ReplaceAllString(text, ""), "\n") {
			require.False(t, letters.MatchString(line), "%s: %q", name, strings.TrimSpace(line))
		}
	}
}

// Scripts and styles are files of their own: the pages' policy allows nothing else.
func TestTemplates_NothingInline(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)\sstyle=|<style|\son[a-z]+=|javascript:|<script(?: [^>]*)?>[^<]`)
	elsewhere := regexp.MustCompile(`(?i)(?:src|href|action)="(?:https?:)?//`)
	for name, text := range sources(t, templateFiles, "templates/*.html") {
		require.False(t, inline.MatchString(text), "%s: %s", name, inline.FindString(text))
		require.False(t, elsewhere.MatchString(text), "%s: %s", name, elsewhere.FindString(text))
	}
	for name, text := range sources(t, assetFiles, "assets/*") {
		if strings.HasSuffix(name, ".svg") {
			continue // it names the standard
		}
		require.NotContains(t, text, "//cdn", name)
		require.False(t, regexp.MustCompile(`https?://`).MatchString(text), name)
		require.False(t, regexp.MustCompile(`innerHTML|insertAdjacentHTML|document\.write|eval\(`).MatchString(text), name)
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]language{
		"":                          english,
		"de":                        english,
		"zh-CN,zh;q=0.9,en;q=0.8":   chinese,
		"en-US,en;q=0.9,zh;q=0.8":   english,
		"de, zh-TW;q=0.7, en;q=0.3": chinese,
		"zh;q=0":                    english,
		"zh;q=x, ;;,=":              english,
	} {
		require.Equal(t, want, accepted(header), header)
	}
	_, ok := parseLanguage("zhx")
	require.False(t, ok)
	require.True(t, slices.Contains(languages[:], chinese))
}
