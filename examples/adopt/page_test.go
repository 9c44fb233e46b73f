package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqlbulkhead/sqlbulkhead/partition"
)

// blocks are the fenced blocks of docs/adopt.md in a language.
func blocks(t *testing.T, language string) (texts []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/adopt.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		texts = append(texts, m[1])
	}
	if len(texts) == 0 {
		t.Fatalf("the page has no block of %s", language)
	}
	return texts
}

// trimmed is a text without what its lines begin and end with.
func trimmed(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestCodeOfThePageIsTheServices(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, name := range []string{"shop.go", "main.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.WriteString(trimmed(string(text)))
	}
	for _, block := range blocks(t, "go") {
		if !strings.Contains(sources.String(), trimmed(block)) {
			t.Errorf("the service does not have the page's\n%s", block)
		}
	}
}

// duration is one as the program prints it.
var duration = regexp.MustCompile(`\b[\d.]+(µs|ms|s)\b`)

func TestDurationsOfThePageAreBoundsOfTheHistograms(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(strings.Join(blocks(t, "text"), "")) {
		if strings.HasPrefix(line, "mode ") {
			continue // for how long it has run
		}
		for _, text := range duration.FindAllString(line, -1) {
			if d, err := time.ParseDuration(text); err != nil || d != 0 && partition.HistogramBound(d) != d {
				t.Errorf("nothing is measured as %s: %s", text, line)
			}
		}
	}
}

// shape is what the program prints without what is another with each run, or on another machine.
func shape(text string) string {
	text = regexp.MustCompile(`\S*/shop\.go`).ReplaceAllString(text, "shop.go")
	return strings.Join(strings.Fields(duration.ReplaceAllString(text, "…")), " ")
}

// shows fails the test unless the page shows what the program prints, for as far as that is the same each time.
func shows(t *testing.T, page, printed string) {
	t.Helper()
	if shape(page) != shape(printed) {
		t.Errorf("the page shows\n%s\nnot\n%s", page, printed)
	}
}

// headings are those of a plan's table.
func headings(plan string) string { return strings.Split(plan, "\n")[1] }
