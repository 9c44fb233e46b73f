package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
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
