package term

import (
	"fmt"
	"io"
	"strings"
)

const (
	gap     = 2  // blanks between columns
	minLast = 16 // columns that the last cell keeps, however narrow the screen
)

// Table is rows under a header. Columns are as wide as their widest cell; the last one is cut to fit
// the screen.
type Table struct {
	header []string
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
	last := len(widths) - 1
	if screen.Width > 0 {
		before := 0
		for _, n := range widths[:last] {
			before += n + gap
		}
		widths[last] = max(screen.Width-before, minLast)
	}
	var b strings.Builder
	for _, row := range rows {
		for i, c := range row {
			if i == last {
				b.WriteString(screen.Paint(c.style, Cut(c.text, widths[i])))
				break
			}
			b.WriteString(screen.Paint(c.style, c.text))
			b.WriteString(strings.Repeat(" ", widths[i]-Width(c.text)+gap))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
