package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// client asks the service at its address.
type client struct {
	*testing.T
	address string
}

// get returns the status, its Retry-After and the text of an answer.
func (c client) get(path string) (status int, retry, text string) {
	c.Helper()
	return c.answer(http.Get("http://" + c.address + path))
}

func (c client) answer(response *http.Response, err error) (status int, retry, text string) {
	c.Helper()
	if err != nil {
		c.Error(err)
		return 0, "", ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.Error(err)
	}
	return response.StatusCode, response.Header.Get("Retry-After"), string(body)
}

// traffic is what became of some requests. A login is missed if nobody is welcome within 100 ms: refused, or too late.
type traffic struct{ logins, missed, reports, refused atomic.Int64 }

func (t *traffic) String() string {
	return fmt.Sprintf("%d of %d logins missed, %d reports, %d refused",
		t.missed.Load(), t.logins.Load(), t.reports.Load(), t.refused.Load())
}

// rush has far more people ask for reports than there are connections, and an export after the other, while others log in.
func (c client) rush(d time.Duration) *traffic {
	ctx, stop := context.WithTimeout(c.Context(), d)
	defer stop()
	var seen traffic
	var all sync.WaitGroup
	repeat := func(do func()) {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
			}
		})
	}
	for range 30 {
		repeat(func() { c.report(&seen) })
	}
	repeat(func() { c.get("/export") })
	repeat(func() { c.login(&seen) })
	all.Wait()
	return &seen
}

func (c client) report(seen *traffic) {
	switch status, retry, text := c.get("/report"); {
	case status == http.StatusOK:
		seen.reports.Add(1)
	case status == http.StatusServiceUnavailable && retry != "":
		seen.refused.Add(1)
		time.Sleep(50 * time.Millisecond) // much sooner than it was told
	default:
		c.Errorf("report: %d %s", status, text)
	}
}

func (c client) login(seen *traffic) {
	began := time.Now()
	status, retry, text := c.answer(http.PostForm("http://"+c.address+"/login", map[string][]string{"user": {"ada"}}))
	welcome := status == http.StatusOK && strings.HasPrefix(text, "welcome ada")
	if refused := status == http.StatusServiceUnavailable && retry != ""; !welcome && !refused {
		c.Errorf("login: %d %s", status, text)
	}
	seen.logins.Add(1)
	if !welcome || time.Since(began) > 100*time.Millisecond {
		seen.missed.Add(1)
	}
	time.Sleep(10 * time.Millisecond)
}
