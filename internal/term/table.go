package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	gap     = 2 // blanks between columns
	minLast = 8 // columns that the last cell keeps, however narrow the screen
	minGive = 6 // and each of those that give way
)

// Table is rows under a header. Columns are as wide as their widest cell; what does not fit
// the screen is cut: from the columns that give way, then from the last one.
type Table struct {
	header []string
	give   []string // headers of columns that give way
	rows   [][]cell
}

type cell struct {
	text  string
	style Style
}

// Styled is a text for a cell that is set off.
func Styled(style Style, text string) any { return cell{text: text, style: style} }

// NewTable returns a table with a header.
func NewTable(header ...string) *Table { return &Table{header: header} }

// GiveWay has the columns under these headers be cut when the screen is too narrow for all: the first of them first.
func (t *Table) GiveWay(headers ...string) *Table {
	t.give = headers
	return t
}

// Row adds a row of texts, plain or Styled; "" is shown as "-". Too few cells leave the last empty.
func (t *Table) Row(cells ...any) {
	row := make([]cell, len(t.header))
	for i := range row {
		if i < len(cells) {
			row[i] = cellOf(cells[i])
		}
		if row[i].text == "" {
			row[i] = cell{text: "-", style: Faint}
		}
	}
	t.rows = append(t.rows, row)
}

func cellOf(v any) cell {
	switch v := v.(type) {
	case cell:
		return cell{text: Clean(v.text), style: v.style}
	case string:
		return cell{text: Clean(v)}
	default:
		return cell{text: Clean(fmt.Sprint(v))}
	}
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Write writes the table for screen. A table without rows has its header alone.
func (t *Table) Write(w io.Writer, screen Screen) error {
	header := make([]cell, len(t.header))
	for i, h := range t.header {
		header[i] = cell{text: h, style: Heading}
	}
	rows := append([][]cell{header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], Width(c.text))
		}
	}
	last, between := len(widths)-1, gap
	if screen.Width > 0 {
		between = t.fit(widths, screen.Width)
	}
	var b strings.Builder
	for _, row := range rows {
		for i, c := range row {
			if i == last {
				b.WriteString(screen.Paint(c.style, Cut(c.text, widths[i])))
				break
			}
			text := Cut(c.text, widths[i])
			b.WriteString(screen.Paint(c.style, text))
			b.WriteString(strings.Repeat(" ", widths[i]-Width(text)+between))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit makes columns narrower until all of them fit into width, and returns how many blanks are left between them:
// the first that gives way, the blanks, the others that give way, then the last.
func (t *Table) fit(widths []int, width int) (between int) {
	last := len(widths) - 1
	between, used := gap, gap*last
	for _, n := range widths[:last] {
		used += n
	}
	over := func() int { return used + min(widths[last], max(minLast, Width(t.header[last]))) - width }
	for i, header := range t.give {
		if i == 1 && over() > 0 {
			between, used = 1, used-(gap-1)*last
		}
		if at := slices.Index(t.header, header); at >= 0 && over() > 0 {
			n := min(over(), max(widths[at]-max(minGive, Width(header)), 0))
			widths[at], used = widths[at]-n, used-n
		}
	}
	widths[last] = max(width-used, minLast)
	return between
}
