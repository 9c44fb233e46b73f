package debugpage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// plot is a small picture of the last minutes, the present at its right edge.
type plot struct {
	Title string
	Most  string // of the values shown
	Area  string // points of a polygon in a picture that is plotWidth by plotHeight
}

const (
	plotWidth  = kept - 1
	plotHeight = 40
)

// ViewBox is that of the picture.
func (plot) ViewBox() string { return fmt.Sprintf("0 0 %d %d", plotWidth, plotHeight) }

// newPlot draws values under a ceiling that is top, or the highest of them.
func newPlot(title string, values []float32, top float64) plot {
	if len(values) == 0 {
		return plot{Title: title, Most: "0"}
	}
	most := float64(slices.Max(values))
	top = max(top, most)
	if top == 0 {
		top = 1
	}
	left := plotWidth - (len(values) - 1)
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%d", left, plotHeight)
	for i, v := range values {
		fmt.Fprintf(&b, " %d,%s", left+i, short(plotHeight*(1-float64(v)/top)))
	}
	fmt.Fprintf(&b, " %d,%d", plotWidth, plotHeight)
	return plot{title, short(most), b.String()}
}

// short is a number with one digit behind the point, if there is something to be said there.
func short(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// Plots are those of a pool. Each has a scale of its own; that of the first two ends at the pool's limits, so that a full
// pool looks full.
func (p pool) Plots() []plot {
	return []plot{
		newPlot("in use", p.History.InUse, float64(p.MaxOpenConns)),
		newPlot("waiting", p.History.Waiting, float64(p.MaxWaiting)),
		newPlot("rejections/s", p.History.Rejections, 1),
	}
}
