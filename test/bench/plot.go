package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The picture: two charts above each other, with the size of the burst from left to right and both axes logarithmic.
const (
	plotWidth, plotHeight  = 760, 640
	chartLeft, chartWidth  = 70, 480
	chartHeight, chartStep = 230, 300
	firstChart             = 50
)

var colors = map[string]string{naive: "#b5651d", gocron: "#7b3fa0", robfig: "#888888", ours: "#0b6e4f", ceiling: "#c0392b"}

// axis maps values to pixels, logarithmically.
type axis struct {
	low, high  float64 // values
	from, size float64 // pixels; a negative size runs upwards
}

func (a axis) at(v float64) float64 {
	v = min(max(v, a.low), a.high)
	return a.from + a.size*math.Log(v/a.low)/math.Log(a.high/a.low)
}

// ticks are the powers of ten on the axis.
func (a axis) ticks() (ticks []float64) {
	for v := a.low; v <= a.high*1.001; v *= 10 {
		ticks = append(ticks, v)
	}
	return ticks
}

func (r *report) plot(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	r.chart(&b, firstChart, "Start delay in ms: p99 (line) and p50 (dots)", axis{low: 0.1, high: 100_000},
		func(res *result) []float64 { return []float64{res.Delay.P99, res.Delay.P50} })
	r.chart(&b, firstChart+chartStep, "CPU a run in ms, with etcd's share", axis{low: 0.001, high: 10},
		func(res *result) []float64 { return []float64{res.CPUPerRun} })
	if r.disturbed() > 0 {
		fmt.Fprintf(&b, `<text x="%d" y="20" fill="#c0392b">the machine was busy with other things</text>`+"\n", chartLeft)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555">jobs in the same second; each measured for %d s on %s, %d cores, %s</text>`+"\n",
		chartLeft, plotHeight-15, r.Seconds, escape(r.Machine.CPU), r.Machine.Cores, escape(r.Machine.Date))
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// chart draws a line for each contestant through the first of its values, and dots at the second.
func (r *report) chart(b *strings.Builder, top int, heading string, y axis, values func(*result) []float64) {
	x := axis{low: 50, high: 20_000, from: chartLeft, size: chartWidth}
	y.from, y.size = float64(top+chartHeight), -chartHeight
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14">%s</text>`+"\n", chartLeft, top-12, heading)
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			chartLeft, y.at(v), chartWidth, chartLeft-8, y.at(v)+4, v)
	}
	bursts := r.bursts()
	marked := make(map[int]bool)
	row := 0
	for _, name := range contestantNames() {
		results := bursts[name]
		if len(results) == 0 {
			continue
		}
		color := colors[name]
		var line []string
		for i := range results {
			res := &results[i]
			px := x.at(float64(res.Jobs))
			if !marked[res.Jobs] {
				marked[res.Jobs] = true
				fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", px, top+chartHeight+16, res.Jobs)
			}
			vs := values(res)
			line = append(line, fmt.Sprintf("%.1f %.1f", px, y.at(vs[0])))
			for k, v := range vs {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s"/>`+"\n", px, y.at(v), 4-k, color)
			}
		}
		fmt.Fprintf(b, `<path d="M%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, "L"), color)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			chartLeft+chartWidth+15, top+20*row, color, chartLeft+chartWidth+33, top+20*row+10, escape(title(name)))
		row++
	}
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
