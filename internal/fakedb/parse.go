package fakedb

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// step is a command ready to run. It may block.
type step func(*execution) error

// script is a parsed text. That of a text with an error has no steps, and an unknown number of placeholders.
type script struct {
	steps []step
	input int // placeholders; -1: any number
}

var comments = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*`)

func parse(text string) (script, error) {
	var sc script
	for part := range strings.SplitSeq(comments.ReplaceAllString(text, " "), ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		step, err := compile(words)
		if err != nil {
			return script{input: -1}, err
		}
		sc.steps = append(sc.steps, step)
		if n := placeholders(words); n < 0 || sc.input < 0 {
			sc.input = -1
		} else {
			sc.input += n
		}
	}
	return sc, nil
}

// placeholders counts them; args without any takes what comes.
func placeholders(words []string) (n int) {
	for _, w := range words {
		if strings.HasPrefix(w, "?") || strings.HasPrefix(w, "$") {
			n++
		}
	}
	if n == 0 && fold(words[0]) == "args" {
		return -1
	}
	return n
}

func compile(words []string) (step, error) {
	command, ok := commands[fold(words[0])]
	if !ok {
		return nil, errf("42601", "syntax error at or near %q", words[0])
	}
	step, ok := command(words[1:])
	if !ok {
		return nil, errf("42601", "syntax error after %q", words[0])
	}
	return step, nil
}

// command turns the words after its name into a step, false if it does not understand them.
type command func(words []string) (step, bool)

// alone is a command that takes no words.
func alone(s step) command { return func(words []string) (step, bool) { return s, len(words) == 0 } }

// lasting is a command that takes a duration.
func lasting(run func(*execution, time.Duration) error) command {
	return func(words []string) (step, bool) {
		if len(words) != 1 {
			return nil, false
		}
		d, err := time.ParseDuration(words[0])
		return func(x *execution) error { return run(x, d) }, err == nil && d >= 0
	}
}

// choosing is a command that fails with the error that its words name.
func choosing(errs map[string]error) command {
	return func(words []string) (step, bool) {
		err, ok := errs[fold(strings.Join(words, " "))]
		return func(*execution) error { return err }, ok
	}
}

// counts reads text as numbers between separators: "2x3".
func counts(text, separator string) (list []int, ok bool) {
	for word := range strings.SplitSeq(text, separator) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}
