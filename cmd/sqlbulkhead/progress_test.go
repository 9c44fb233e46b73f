package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressIsALineASecondWithTheEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		var count tally
		stop := newScreen(&out).watch("one pool of 20", 2*time.Second, &count)
		time.Sleep(500 * time.Millisecond)
		count.login(0, 1, nil, false)
		time.Sleep(2 * time.Second)
		count.report(nil)
		stop()
		const want = `
one pool of 20   0/2s  logins 0 ok 0 failed, reports 0 ok 0 rejected
one pool of 20   1/2s  logins 1 ok 0 failed, reports 0 ok 0 rejected
one pool of 20   2/2s  logins 1 ok 0 failed, reports 1 ok 0 rejected
`
		if out.String() != want[1:] {
			t.Errorf("got\n%s", out.String())
		}
	})
}

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		stop := screen{&out, true}.watch("x", 2*time.Second, new(tally))
		time.Sleep(1500 * time.Millisecond)
		stop()
		if text := out.String(); strings.Count(text, "\r") != 3 || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
			t.Errorf("%q", text)
		}
	})
}

func TestPipeAndFileAreNoTerminals(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(new(strings.Builder)) {
		t.Error("taken for a terminal")
	}
}
