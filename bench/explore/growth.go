package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/spec"
)

// series is one line of the plot.
type series struct {
	name    string
	words   string
	reduced bool
	most    int
	states  []int64
	seconds []float64
}

// growth explores the v4 world with more and more sockets and writes a plot.
func growth(ctx context.Context) error {
	all := []*series{
		{name: "one user", words: "v4", reduced: true, most: 7},
		{name: "two users", words: "v4 uid=2", reduced: true, most: 6},
		{name: "one user, no symmetry", words: "v4", most: 5},
	}
	for _, s := range all {
		for n := 1; n <= s.most && ctx.Err() == nil; n++ {
			x, err := searchIn("6.18", s.words, n, spec.Sound, spec.Complete)
			if err != nil {
				return err
			}
			x.Unreduced = !s.reduced
			o, err := x.Run(ctx, func(*explore.History) error { return nil })
			if err != nil {
				return err
			}
			if !o.Complete {
				break
			}
			s.states, s.seconds = append(s.states, o.States), append(s.seconds, o.Seconds)
		}
	}
	fmt.Print(plot(all))
	return ctx.Err()
}

// exponent fits states = a * b^sockets to the last four points and gives b.
func exponent(states []int64) float64 {
	n := min(4, len(states))
	var sx, sy, sxx, sxy float64
	for i := len(states) - n; i < len(states); i++ {
		x, y := float64(i), math.Log(float64(states[i]))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return math.Exp((float64(n)*sxy - sx*sy) / (float64(n)*sxx - sx*sx))
}

func plot(all []*series) string {
	const width, height, left, bottom = 640, 400, 60, 40
	colours := []string{"#1f77b4", "#d62728", "#2ca02c"}
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, height)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	x := func(n int) float64 { return left + float64(n-1)*(width-left-200)/6 }
	y := func(s float64) float64 { return height - bottom - math.Log10(max(s, 1))*(height-bottom-30)/8 }
	for d := 0; d <= 8; d += 2 {
		fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"8\" y=\"%.1f\">10^%d</text>\n",
			left, x(7), y(math.Pow10(d)), y(math.Pow10(d)), y(math.Pow10(d))+4, d)
	}
	for n := 1; n <= 7; n++ {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x(n), height-bottom+18, n)
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">sockets; reachable states of the v4 world on 6.18, logarithmic</text>\n", left, height-8)
	for i, s := range all {
		var line []string
		for k, v := range s.states {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(k+1), y(float64(v))))
			fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%d sockets: %d states, %.2f s</title></circle>\n",
				x(k+1), y(float64(v)), colours[i], k+1, v, s.seconds[k])
		}
		fmt.Fprintf(&b, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", strings.Join(line, " "), colours[i])
		if n := len(s.states); n > 1 {
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s: x%.1f a socket (%.1f s at %d)</text>\n",
				x(n)+8, y(float64(s.states[n-1]))+4, colours[i], s.name, exponent(s.states), s.seconds[n-1], n)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
