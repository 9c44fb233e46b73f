package conformance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqlbulkhead/sqlbulkhead/conformance"
)

func TestEveryAcceptedDifferenceIsInTheReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range conformance.Accepted {
		if !strings.Contains(string(readme), "| "+a.Name+" |") {
			t.Errorf("README.md does not tell of %q", a.Name)
		}
	}
}
