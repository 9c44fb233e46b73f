package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// scraper is a Prometheus that runs.
type scraper struct {
	client
}

// scrapes runs the next command, which starts Prometheus.
func (n *newcomer) scrapes(command string) scraper {
	n.Helper()
	n.take(command)
	words := append(strings.Fields(command), "--web.listen-address=127.0.0.1:0")
	address, _ := n.start(exec.Command(words[0], words[1:]...), `"Listening on".*address=(\S+)`)
	n.places = strings.NewReplacer("localhost:8080", n.address, "localhost:9090", address)
	s := scraper{client{n.T, address}}
	s.until(func() string {
		status, _, text := s.get("/-/ready")
		return lacks(status == http.StatusOK, text)
	})
	return s
}

// until asks again until nothing is lacking.
func (s scraper) until(lacking func() string) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		what := lacking()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("Prometheus lacks %s", what)
		}
	}
}

// lacks is what is lacking, unless it is there.
func lacks(there bool, what string) string {
	if there {
		return ""
	}
	return what
}

// ask decodes what Prometheus answers, which is a failure if it is an error.
func (s scraper) ask(path string, query url.Values, data any) {
	s.Helper()
	status, _, text := s.get(path + "?" + query.Encode())
	answer := struct{ Data any }{data}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		s.Fatalf("%s %s: %d %v %s", path, query, status, err, text)
	}
}

// found is how many series a query had in the last minutes, and the greatest number among theirs.
type found struct {
	series int
	most   float64
}

// find asks as a dashboard does, for a time and not for a moment.
func (s scraper) find(query string) (f found) {
	s.Helper()
	now := time.Now()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	s.ask("/api/v1/query_range", url.Values{
		"query": {query}, "step": {"1"},
		"start": {fmt.Sprint(now.Add(-5 * time.Minute).Unix())}, "end": {fmt.Sprint(now.Unix())},
	}, &data)
	for _, series := range data.Result {
		numbers := 0
		for _, v := range series.Values {
			number, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
			if err != nil {
				s.Fatalf("%s: %v", query, err)
			}
			if !math.IsNaN(number) {
				f.most = max(f.most, number)
				numbers++
			}
		}
		if numbers > 0 {
			f.series++
		}
	}
	return f
}

// rules returns what became of each rule.
func (s scraper) rules() map[string]string {
	s.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	s.ask("/api/v1/rules", nil, &data)
	healths := make(map[string]string)
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			healths[rule.Name] = rule.Health + rule.LastError
		}
	}
	return healths
}
