package term

import "strings"

// Bar draws how much of total is done in width columns, brackets included: [=====>    ]. A total that is not known
// draws nothing.
func Bar(done, total int64, width int) string {
	room := width - 2
	if total <= 0 || room < 1 {
		return ""
	}
	share := float64(min(max(done, 0), total)) / float64(total)
	n := int(share * float64(room))
	drawn := strings.Repeat("=", n)
	if n < room {
		drawn += ">"
	}
	return "[" + drawn + strings.Repeat(" ", room-len(drawn)) + "]"
}
