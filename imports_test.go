package sqlbulkhead_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sqlbulkhead/sqlbulkhead"

// arrows is the whole of the house: what each package may import of ours.
var arrows = map[string][]string{
	"workload":            nil,
	"stmttimeout":         nil,
	"driver":              nil,
	"internal/gate":       nil,
	"internal/fakedb":     nil,
	"internal/report":     nil,
	"internal/testserver": nil,
	"partition":           {"workload", "stmttimeout", "driver", "internal/gate"},
	"httpbulkhead":        {"partition", "workload"},
	"debugpage":           {"partition", "workload"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestArrowsRunOneWayAndTheCoreImportsTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, known := arrows[name]
		if !known && p.ImportPath != module {
			t.Errorf("package %s has no place in the house", p.ImportPath)
		}
		for _, path := range p.Imports {
			ours, isOurs := strings.CutPrefix(path, module+"/")
			switch {
			case isOurs && !slices.Contains(allowed, ours):
				t.Errorf("%s imports %s", name, ours)
			case !isOurs && strings.Contains(strings.Split(path, "/")[0], "."):
				t.Errorf("%s imports %s, which is not the standard library", name, path)
			}
		}
	}
}

// list returns the packages of the root module, without their tests.
func list(t *testing.T) (packages []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
