package report

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The plot's area in the coordinates of its SVG, and what the axis of latency
// covers: it is logarithmic, since good and bad lie a factor of a thousand
// apart.
const (
	plotWidth, plotHeight = 440.0, 190.0
	left, right           = 46.0, plotWidth - 10
	top, bottom           = 8.0, plotHeight - 22

	fastest, slowest = 0.2, 2000.0 // ms
)

// Plot is one act, drawn.
type Plot struct {
	Act           Act
	Width, Height float64
	Title         string
	Served        string // the paths of the marks
	Failed        string
	Spans         []Box
	Bound         *Line
	Rows, Columns []Line
}

// Line is a line of the grid with its label.
type Line struct {
	X1, Y1, X2, Y2 float64
	Label          string
}

// Box is a rectangle with its label.
type Box struct {
	X, Y, Width, Height float64
	Label               string
}

// Bottom is where its lower edge lies.
func (b Box) Bottom() float64 { return b.Y + b.Height }

// plot draws the act on an axis of time that is as long as the day.
func plot(a Act, day time.Duration) Plot {
	x := func(at time.Duration) float64 {
		return round(left + (right-left)*min(1, max(0, float64(at)/float64(day))))
	}
	p := Plot{Act: a, Width: plotWidth, Height: plotHeight}
	p.Title = fmt.Sprintf("%s: %v", a.Arrangement, a.Summary)
	p.Served, p.Failed = marks(a.Logins, x)
	for _, s := range a.Spans {
		from, to := x(time.Duration(s.From)), x(time.Duration(s.To))
		p.Spans = append(p.Spans, Box{from, top, round(to - from), bottom - top, s.Name})
	}
	if a.Bound > 0 {
		at := y(time.Duration(a.Bound))
		p.Bound = &Line{left, at, right, at, "p99 at most " + a.Bound.String()}
	}
	p.Rows, p.Columns = rows(), columns(x, day)
	return p
}

// marks draws a dot for each login that was served and a cross for each that
// failed. What would lie on another is left out: there may be millions.
func marks(logins []Login, x func(time.Duration) float64) (served, failed string) {
	type mark struct {
		x, y   float64
		failed bool
	}
	drawn := make(map[mark]bool)
	var dots, crosses strings.Builder
	for _, l := range logins {
		m := mark{x(l.At), y(l.Took), l.Failed}
		switch {
		case drawn[m]:
		case m.failed:
			fmt.Fprintf(&crosses, "M%g %gl4 4m0-4l-4 4", m.x-2, m.y-2)
		default:
			fmt.Fprintf(&dots, "M%g %gh0", m.x, m.y)
		}
		drawn[m] = true
	}
	return dots.String(), crosses.String()
}

// round is to half a pixel, which nobody sees.
func round(v float64) float64 { return math.Round(v*2) / 2 }

// y is where a latency lies.
func y(took time.Duration) float64 {
	ms := min(slowest, max(fastest, float64(took)/float64(time.Millisecond)))
	return round(bottom - (bottom-top)*math.Log(ms/fastest)/math.Log(slowest/fastest))
}

func rows() (lines []Line) {
	for _, r := range []struct {
		at    time.Duration
		label string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}} {
		lines = append(lines, Line{left, y(r.at), right, y(r.at), r.label})
	}
	return lines
}

// columns has a label every second, or less often on a long day.
func columns(x func(time.Duration) float64, day time.Duration) (lines []Line) {
	step := time.Second
	for day/step > 12 {
		step *= 2
	}
	for at := time.Duration(0); at <= day; at += step {
		lines = append(lines, Line{x(at), top, x(at), bottom, fmt.Sprintf("%d s", at/time.Second)})
	}
	return lines
}

// length is the time that all acts of a day need on their common axis.
func (d Day) length() time.Duration {
	longest := time.Second
	for _, a := range d.Acts {
		for _, l := range a.Logins {
			longest = max(longest, l.At)
		}
	}
	return longest
}

// Plots are the acts of a day on one scale.
func (d Day) Plots() (plots []Plot) {
	for _, a := range d.Acts {
		plots = append(plots, plot(a, d.length()))
	}
	return plots
}
