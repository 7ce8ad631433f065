package web

import (
	"regexp"
	"strings"
)

// scheduleWords is a schedule in words, which come in English. In Chinese, what the rules below do not cover stays
// as it is: a mixture would be worse than either.
func (l language) scheduleWords(words string) string {
	if l != chinese {
		return words
	}
	text, zone := words, ""
	if at := strings.LastIndex(words, ", "); at > 0 && isZone.MatchString(words[at+2:]) {
		text, zone = words[:at], "（"+words[at+2:]+"）"
	}
	for _, rule := range scheduleRules {
		text = rule.from.ReplaceAllString(text, rule.to)
	}
	for english, chinese := range scheduleUnits {
		text = strings.ReplaceAll(text, english, chinese)
	}
	if hasLetters.MatchString(text) {
		return words
	}
	return strings.ReplaceAll(text, " ", "") + zone
}

var (
	isZone     = regexp.MustCompile(`^(UTC|[A-Z][A-Za-z_+-]*(/[A-Za-z0-9_+-]+)+)$`)
	hasLetters = regexp.MustCompile(`[A-Za-z]`)
)

// scheduleRule turns a phrase around.
type scheduleRule struct {
	from *regexp.Regexp
	to   string
}

func rule(from, to string) scheduleRule { return scheduleRule{regexp.MustCompile(from), to} }

var scheduleRules = []scheduleRule{
	rule(`^Every (\d+) hours?`, "每${1}小时"),
	rule(`^Every (\d+) minutes?`, "每${1}分钟"),
	rule(`^Every (\d+) seconds?`, "每${1}秒"),
	rule(`^Every hour`, "每小时"),
	rule(`^Every minute`, "每分钟"),
	rule(`^Every second`, "每秒"),
	rule(`^Once, at (.*) UTC$`, "仅一次，${1}（UTC）"),
	rule(`^At (minutes? )([\d, and]+) of every hour`, "每小时第 ${2} 分"),
	rule(`^At ([\d:, and]+) on ([A-Z][a-z]+day(?:(?:,| and) [A-Z][a-z]+day)*)$`, "每周${2} ${1}"),
	rule(`^At ([\d:, and]+), ([A-Z][a-z]+day) to ([A-Z][a-z]+day)$`, "每周${2}至${3} ${1}"),
	rule(`^At ([\d:, and]+) on days? ([\d, and]+) of the month$`, "每月 ${2} 日 ${1}"),
	rule(`^At ([\d:, and]+) on the last day of the month$`, "每月最后一天 ${1}"),
	rule(`^At ([\d:, and]+)$`, "每天 ${1}"),
	rule(` from ([\d:]+) to ([\d:]+)$`, "，${1} 至 ${2}"),
	rule(` and `, "、"),
	rule(`, `, "、"),
}

var scheduleUnits = map[string]string{
	"Monday": "一", "Tuesday": "二", "Wednesday": "三", "Thursday": "四", "Friday": "五", "Saturday": "六", "Sunday": "日",
}
