package main

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
)

// freeAddress is one that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// dashboardQueries are the dashboard's, with its variables as Grafana fills them in.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../metrics/prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$__interval", "1m", "$db_name", ".+", "$pool", ".+")
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if expr, ok := v["expr"].(string); ok {
				queries = append(queries, variables.Replace(expr))
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(dashboard)
	if len(queries) == 0 {
		t.Fatal("the dashboard asks nothing")
	}
	return queries
}
